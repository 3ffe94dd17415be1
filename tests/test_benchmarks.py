"""Benchmarks that only compute print what the docs quote from them; one that simulates runs at a small size."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.support import ROOT


def printed(*command: str, timeout: float) -> Any:
    """What a benchmark prints with `--json`."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "agents")])}
    script, *options = command
    line = [sys.executable, str(ROOT / "benchmarks" / script), *options, "--json"]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=timeout, check=True)
    return json.loads(done.stdout)


@pytest.mark.slow
def test_the_arithmetic_of_trainings_is_that_of_the_docs() -> None:
    learners = printed("training_arithmetic.py", timeout=120)["learner_gb"]
    row = next(
        line for line in (ROOT / "docs" / "training-scale.md").read_text().splitlines() if "sharded over 4" in line
    )
    for cell, model in zip(row.split("|")[2:6], learners["float32"], strict=True):
        sizes = [learners[f"bfloat16, checkpointing; sharded over {n} learners"][model] for n in (4, 6, 8)]
        assert cell.strip(" *") == "; ".join(f"{sum(each.values()):.0f}" for each in sizes)


@pytest.mark.ray
@pytest.mark.long
def test_the_driver_at_scale_runs_small_and_names_what_saturates_first() -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    pytest.importorskip("torch", reason="torch is not installed")
    found = printed("at_scale.py", "--trees", "64", "--book", "1000", timeout=600)
    (point,) = found["points"]
    assert point["trees"] == 64
    assert point["book"]["entries"] > 1000 + 64
    parts = "tasks receive figures record plan put snapshot pickle"
    assert set(point["cpu_ms_per_tree"]) == set(parts.split())
    assert all(ms > 0 for ms in point["cpu_ms_per_tree"].values())
    # Sixteen of the 72 replies train: their tokens travel, and little else.
    assert 100_000 < point["bytes_per_tree"]["received"] < 400_000
    assert [each["gpus"] for each in found["scaled"]] == [64, 1024] * 2
    for each in found["scaled"]:
        assert each["trees"] == 32 * each["gpus"]
        assert each["shares"][each["first"]] == max(each["shares"].values())
