"""Cross-play: every coder against every tester."""
