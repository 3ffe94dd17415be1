"""The parts of `rules.replies`: from the text of a reply to a program or to test cases."""
