"""Analysis of Mistake Books: how long cases stay, and smaller cases that still beat the same programs."""
