"""Runs on disk: their records, their configuration, and their folder, which survives a crash."""
