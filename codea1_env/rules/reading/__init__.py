"""How replies are read: the parts behind `rules.replies`."""
