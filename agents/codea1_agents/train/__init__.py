"""Training: GRPO on RLlib, runs with folders, experiments of many runs, and models small enough for a laptop."""
