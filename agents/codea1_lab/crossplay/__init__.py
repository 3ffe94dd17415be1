"""Cross-play: every coder plays every tester on the same problems."""
