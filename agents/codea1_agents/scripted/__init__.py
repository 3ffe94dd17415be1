"""Agents without a model: baselines, upper bounds and adversaries for real games and for tests."""
