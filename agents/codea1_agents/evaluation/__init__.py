"""Evaluation: figures of coders and testers over a set of problems, outside of any game.

`metrics` has the formulas. `coder`, `tester` and `selection` call the agents and judge their replies. `records` defines
what is stored, `folder` stores it, and `comparison` compares two evaluations.
"""
