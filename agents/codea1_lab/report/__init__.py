"""Writes one self-contained HTML file from recorded runs: curves, tables, and a browser of episodes."""
