"""Benchmarks that only compute print what the docs quote from them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.support import ROOT


@pytest.mark.slow
def test_the_arithmetic_of_trainings_is_that_of_the_docs() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "agents")])}
    command = [sys.executable, str(ROOT / "benchmarks" / "training_arithmetic.py"), "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    learners = json.loads(done.stdout)["learner_gb"]
    row = next(
        line for line in (ROOT / "docs" / "training-scale.md").read_text().splitlines() if "sharded over 4" in line
    )
    for cell, model in zip(row.split("|")[2:6], learners["float32"], strict=True):
        sizes = [learners[f"bfloat16, checkpointing; sharded over {n} learners"][model] for n in (4, 6, 8)]
        assert cell.strip(" *") == "; ".join(f"{sum(each.values()):.0f}" for each in sizes)
