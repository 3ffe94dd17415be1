"""What several test modules share and is no fixture."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The repository."""
