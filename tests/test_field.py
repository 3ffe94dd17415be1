"""Small inputs of what models and data sets write, kept beside the repository: each exits 0 where it is read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "shared" / "cases" / "field"
ELSEWHERE = {"17-golden-hang-cost.py", "22-body-completions.py"}  # about time, and about files of completions
CASES = sorted(path.name for path in FOLDER.glob("*.py") if path.name not in ELSEWHERE)


@pytest.mark.skipif(not CASES, reason="needs ../shared/cases/field")
@pytest.mark.parametrize("name", CASES)
def test_an_input_from_the_field_is_read(name: str) -> None:
    ended = subprocess.run([sys.executable, FOLDER / name], capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
