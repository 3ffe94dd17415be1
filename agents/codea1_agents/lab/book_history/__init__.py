"""Mistake Books as data: smaller cases that still beat the same programs."""
