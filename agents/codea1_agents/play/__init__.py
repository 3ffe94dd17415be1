"""Plays games of `code_a1_v0` between two agents, one game or hundreds at a time."""
