from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import codea1, one_object, refused


@pytest.mark.slow
def test_the_exported_file_can_be_played_under_golden_rules() -> None:
    options = (
        "--agent",
        "boundary",
        "--problems",
        "starter",
        "--limit",
        3,
        "--tests",
        4,
        "--out",
        "tests.jsonl",
        "--json",
    )
    found = one_object(codea1("export", "tests", *options).stdout)
    assert (found["n_problems"], found["n_tests"]) == (3, 12)
    played = codea1("play", "--problems", "tests.jsonl", "--coder", "reference", "--rules", "golden", "-n", 3, "--json")
    assert played.exit_code == 0, played.stderr
    assert one_object(played.stdout)["figures"]["coder_reward"]["mean"] == 1.0


def test_nothing_is_written_where_no_test_is_confirmed(folder: Path) -> None:
    options = ("--agent", "invalid,kind=prose", "--problems", "starter", "--limit", 2, "--out", "tests.jsonl")
    assert "no test was confirmed" in refused("export", "tests", *options)
    assert not (folder / "tests.jsonl").exists()
