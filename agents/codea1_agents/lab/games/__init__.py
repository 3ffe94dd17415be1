"""Two-player matrix games: equilibria, exploitability, dynamics, ranking. With numpy, and scipy for linear programs."""
