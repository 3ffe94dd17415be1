"""One self-contained HTML file from recorded runs: curves, tables, and every episode to be read."""
