"""The examples that need a model, each with a tiny real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.command_line import run_python

EXAMPLES = ROOT / "examples" / "models"


@pytest.mark.long
@pytest.mark.slow
def test_two_endpoints_play_against_each_other(transformers_server: str, tiny_model: Path, tmp_path: Path) -> None:
    pytest.importorskip("openai")
    servers = [transformers_server, tiny_model] * 2
    told = run_python(EXAMPLES / "two_endpoints.py", *servers, folder=tmp_path, OPENAI_API_KEY="")
    assert told.count("coder ") == 8
    assert "None" not in told  # no game is masked
    assert "tokens written: " in told


@pytest.mark.slow
def test_a_model_plays_against_the_fuzz_tester(tiny_model: Path, tmp_path: Path) -> None:
    told = run_python(EXAMPLES / "model_against_fuzz.py", tiny_model, folder=tmp_path)
    assert "6 replies" in told


def test_every_example_is_run_here() -> None:
    source = Path(__file__).read_text()
    assert [path.name for path in EXAMPLES.glob("*.py") if f'"{path.name}"' not in source] == []
