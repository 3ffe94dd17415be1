from __future__ import annotations

from typing import Any

from tests.support.command_line import codea1, one_object, refused


def test_choosing_by_blind_tests_beats_a_draw_by_lot() -> None:
    agents = ("--coder", "mutant,strength=0.6", "--tester", "boundary")
    size = ("--limit", 6, "-n", 4, "-m", 2)
    command = ("eval", "select", *agents, "--problems", "starter", *size, "--out", "s", "--json")
    result = codea1(*command)
    assert result.exit_code == 0, result.stderr
    whole = one_object(result.stdout)
    found = whole["figures"]
    assert found["average"]["mean"] < found["chosen"]["mean"] <= found["best"]["mean"]
    assert found["gain"]["low"] > 0
    again = codea1(*command)
    assert one_object(again.stdout) == whole  # nothing is asked again


def test_a_problem_set_without_golden_tests_cannot_be_judged(folder: Any) -> None:
    row = '{"id": "a", "statement": "s", "entry_point": "f", "solution": "def f(): return 1"}\n'
    (folder / "untested.jsonl").write_text(row)
    sentence = refused("eval", "select", "--coder", "reference", "--tester", "boundary", "--problems", "untested.jsonl")
    assert "golden tests" in sentence
