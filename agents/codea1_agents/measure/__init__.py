"""What agents are worth: figures of coders and testers over a set of problems, outside of any game.

`metrics` holds the formulas; `coder`, `tester` and `selection` ask the agents and judge
their replies; `records` is what is kept of it, `folder` where; `comparison` puts two evaluations side by side.
"""
