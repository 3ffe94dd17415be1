"""Two-player matrix games: equilibria and exploitability. Linear programs need scipy."""
