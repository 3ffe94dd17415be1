"""Runs on disk: what is recorded, how it was configured, and the folder that survives a crash."""
