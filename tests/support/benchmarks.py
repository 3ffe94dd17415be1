"""Runs a script of `benchmarks/` as a user does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from tests.support import ROOT

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "agents")])}


def printed_by(script: str, *options: str, timeout: float) -> Any:
    """Return the JSON that a benchmark prints."""
    line = [sys.executable, str(ROOT / "benchmarks" / script), *options]
    done = subprocess.run(line, env=ENVIRONMENT, capture_output=True, text=True, timeout=timeout, check=True)
    return json.loads(done.stdout)
