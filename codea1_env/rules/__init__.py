"""The rules of the game as pure functions: no processes, no files, no clock."""
