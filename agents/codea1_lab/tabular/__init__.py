"""The game of coder and tester with a table for each policy: whole trainings in a second, by the rules of training."""
