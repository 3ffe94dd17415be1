"""The benchmark that records what a checkout computes: what it writes down, and what it calls a difference."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT

SCRIPT = ROOT / "benchmarks" / "oracles.py"


@pytest.fixture(scope="module")
def oracles() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def test_a_line_per_value_in_one_order_without_clocks(oracles: dict[str, Any]) -> None:
    rounds = [{"reward": 0.1 + 0.2, "judge_s": 1.5}, {}]
    found = {"rounds": rounds, "time": {"x": 1}, "detail": "a\nb", "tier": "landlock"}
    assert list(oracles["lines_of"](found)) == [r'detail = "a\nb"', "rounds[0].reward = 0.3", "rounds[1] = {}"]
    assert list(oracles["lines_of"]([-1e-9, None], digits=4)) == ["[0] = 0.0", "[1] = null"]


def test_the_reward_table_holds_the_release_s_row_by_row(oracles: dict[str, Any], tmp_path: Path) -> None:
    oracles["rewards"](oracles["Recorder"](tmp_path, tmp_path))
    lines = set((tmp_path / "table.txt").read_text().splitlines())
    for row, coder, tester in (
        ("8 valid 8 invalid 8 failed, replayed None", 0.0, 0.5),
        ("1 valid 0 invalid 0 failed, replayed (8, 0)", 1.0, 0.3125),
        ("12 valid 0 invalid 4 failed, replayed None", 0.666666667, 0.5),
        ("invalid candidate", 0.0, -0.25),
    ):
        assert {f"release {row}[0].coder.value = {coder}", f"release {row}[0].testers[0].value = {tester}"} <= lines


def compared(old: Path, new: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), "compare", str(old), str(new)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_what_differs_is_named_with_its_first_lines(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old, new):
        (folder / "play").mkdir(parents=True)
        (folder / "play" / "a.txt").write_text("coder = 1.0\ntester = 0.5\n")
        (folder / "play" / "b.txt").write_text("n = 3\n")
    done = compared(old, new)
    assert (done.returncode, done.stdout) == (0, "no difference\n")
    (new / "play" / "a.txt").write_text("coder = 1.0\ntester = 0.25\n")
    (new / "play" / "b.txt").unlink()
    done = compared(old, new)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        f"play/a.txt: 1 lines only in {old}, 1 only in {new}; the first:",
        "  - tester = 0.5",
        "  + tester = 0.25",
        f"play/b.txt: not in {new}",
    ]


def test_a_folder_without_records_is_an_error(tmp_path: Path) -> None:
    done = compared(tmp_path, tmp_path)
    assert done.returncode == 2
    assert "holds no records" in done.stderr
