"""The examples that need a model, each with a tiny real one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT

EXAMPLES = ROOT / "examples" / "models"


def output(name: str, *arguments: object, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "OPENAI_API_KEY": ""},
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
@pytest.mark.slow
def test_two_endpoints_play_against_each_other(transformers_server: str, tiny_model: Path, tmp_path: Path) -> None:
    pytest.importorskip("openai")
    told = output("two_endpoints.py", *[transformers_server, tiny_model] * 2, cwd=tmp_path)
    assert told.count("coder ") == 8
    assert "None" not in told  # no game is masked
    assert "tokens written: " in told


@pytest.mark.slow
def test_a_model_plays_against_the_fuzz_tester(tiny_model: Path, tmp_path: Path) -> None:
    told = output("model_against_fuzz.py", tiny_model, cwd=tmp_path)
    assert "6 replies" in told


def test_every_example_is_run_here() -> None:
    source = Path(__file__).read_text()
    assert [path.name for path in EXAMPLES.glob("*.py") if f'"{path.name}"' not in source] == []
