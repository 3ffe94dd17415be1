"""Adapters for trainers and harnesses: one module each, which imports its package when it is used."""
