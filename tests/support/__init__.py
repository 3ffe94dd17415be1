"""What several test modules share and is not a fixture."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The repository."""

ALL_TESTS = os.environ.get("CODEA1_ALL_TESTS", "") not in ("", "0")
"""Whether tests that take long run, too: before a release, and when what they cover changes."""
