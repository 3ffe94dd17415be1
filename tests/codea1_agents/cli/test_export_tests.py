from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import document, refused


@pytest.mark.slow
def test_the_exported_file_can_be_played_under_golden_rules() -> None:
    source = ("--agent", "boundary", "--problems", "starter", "--limit", 3)
    found = document("export", "tests", *source, "--tests", 4, "--out", "tests.jsonl")
    assert (found["n_problems"], found["n_tests"]) == (3, 12)
    played = document("play", "--problems", "tests.jsonl", "--coder", "reference", "--rules", "golden", "-n", 3)
    assert played["figures"]["coder_reward"]["mean"] == 1.0


def test_nothing_is_written_where_no_test_is_confirmed(folder: Path) -> None:
    options = ("--agent", "invalid,kind=prose", "--problems", "starter", "--limit", 2, "--out", "tests.jsonl")
    assert "no test was confirmed" in refused("export", "tests", *options)
    assert not (folder / "tests.jsonl").exists()
