"""Two-player matrix games: equilibria, exploitability, dynamics, ranking. Linear programs need scipy."""
