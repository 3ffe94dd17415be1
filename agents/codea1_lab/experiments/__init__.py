"""Grids of training runs (systems x bases x seeds) that end in one report."""
