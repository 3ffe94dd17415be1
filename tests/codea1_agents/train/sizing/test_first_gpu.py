"""The arithmetic against what a GPU was measured to need: the table of docs/experiments/first-gpu/report.md."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import ROOT

pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("gymnasium", reason="gymnasium is not installed")

LESS = (0.01, 0.16)
"""How much less than computed was measured, as docs/first-gpu.md says."""


def measured() -> dict[str, dict[str, str]]:
    """The rows of the table *Learning*."""
    report = (ROOT / "docs" / "experiments" / "first-gpu" / "report.md").read_text()
    table = report.partition("## Learning\n")[2].partition("\n## ")[0].strip().splitlines()
    names, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    return {row[0]: dict(zip(names, row, strict=True)) for row in rows}


@pytest.fixture(scope="module")
def script() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield importlib.import_module("first_gpu")


def test_every_way_to_learn_was_measured_and_the_page_says_how_much_less(script: Any) -> None:
    assert list(measured()) == list(script.WAYS)
    least, most = (round(100 * share) for share in LESS)
    assert f"took {least} to {most} % less memory" in (ROOT / "docs" / "first-gpu.md").read_text()


@pytest.mark.parametrize("name", measured())
def test_a_gpu_needed_what_is_computed(name: str, script: Any) -> None:
    bench, row, how = script.Bench("cpu", ""), measured()[name], script.WAYS[name]
    bench.scale = script.SCALES["cuda"]
    size = script.micro_batch_of(bench.batch(), **how)
    checkpoints = how.get("gradient_checkpointing", False)
    parts = script.dry_run(bench.scale.shape, size, checkpoints, how.get("logits_chunk_tokens", 256))
    computed = sum(parts.values())
    assert float(row["dry_run_gb"]) == pytest.approx(computed, rel=0.005)
    least, most = LESS
    assert 1 - most <= float(row["peak_gb"]) / computed <= 1 - least
