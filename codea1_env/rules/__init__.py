"""The rules of the game, pure: values in, values out."""
