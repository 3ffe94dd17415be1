from __future__ import annotations

import json
from pathlib import Path

import pytest

from codea1_agents.checks import sandbox_check
from codea1_agents.checks.sandbox_check import SandboxFinding
from codea1_env.facts.verdicts import OutcomeKind
from codea1_env.problems import GoldenCase, Problem, ProblemSet, dump_jsonl
from codea1_env.problems.own_rows import problem_to_row
from tests.support import argv_problems
from tests.support.command_line import codea1, document, one_object, refused

RIGHT = Problem("P/right", "def f(x): ...", "f", "def f(x):\n    return x\n", (GoldenCase("f(1)", "1"),))
WRONG = Problem("P/wrong", "def f(x): ...", "f", "def f(x):\n    return x\n", (GoldenCase("f(1)", "2"),))


@pytest.mark.parametrize("source", ["starter", argv_problems.SOURCE])
def test_sound_problems_are_counted_and_exit_with_0(source: str) -> None:
    data = document("check", "problems", source, "--limit", 2)
    assert (data["counts"], data["not_ok"], data["skipped"]) == ({"ok": 2}, [], [])


def test_rows_that_are_not_ok_are_told_with_their_reasons_and_exit_with_1(folder: Path) -> None:
    path = folder / "some.jsonl"
    dump_jsonl(ProblemSet("some", (RIGHT, WRONG)), path)
    interactive = json.dumps({**problem_to_row(RIGHT), "interactor": "print(1)"})
    path.write_text(path.read_text() + "{broken\n" + f"{interactive}\n" * 2)
    result = codea1("check", "problems", path, "--json")
    assert result.exit_code == 1
    assert "P/wrong" in result.stderr
    assert "P/right" not in result.stderr
    data = one_object(result.stdout)
    assert data["counts"] == {"ok": 1, "wrong": 1}
    assert [(row["problem_id"], row["status"]) for row in data["not_ok"]] == [("P/wrong", "wrong")]
    assert len(data["skipped"]) == 3
    assert data["skipped_by_cause"] == {"interactive": 2, "broken": 1}


def test_a_solution_that_answers_differently_each_time_is_told_with_the_call(folder: Path) -> None:
    solution = "import random\ndef f(x):\n    return x + random.randrange(10**9)\n"
    row = {**problem_to_row(RIGHT), "solution": solution, "golden": ["assert f(3) >= 3"]}
    (folder / "some.jsonl").write_text(json.dumps(row))
    result = codea1("check", "problems", "some.jsonl", "--json")
    (told,) = one_object(result.stdout)["not_ok"]
    assert (result.exit_code, told["status"]) == (1, "flaky")
    assert told["detail"].startswith("answers differ: f(3) gives ")


@pytest.mark.parametrize("source", ["nowhere", "nowhere.jsonl", "my_agents:lost"])
def test_a_source_that_cannot_be_read_is_bad_input_not_a_failed_check(source: str) -> None:
    refused("check", "problems", source)


@pytest.mark.slow
def test_every_kind_of_outcome_is_obtained_and_the_promise_told() -> None:
    result = codea1("sandbox", "check", "--json")
    data = one_object(result.stdout)
    assert result.exit_code == 0, result.stderr
    assert all(each["ok"] for each in data["outcomes"])
    assert set(data["sandbox"]) == {"name", "guarantee", "tier", "refusals"}
    assert "time_limit" in result.stderr
    assert "local: " in result.stderr


def test_a_wrong_outcome_exits_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    finding = SandboxFinding(OutcomeKind.VALUE, (OutcomeKind.VALUE, OutcomeKind.ERROR))
    monkeypatch.setattr(sandbox_check, "check_sandbox", lambda sandbox: (finding,))
    result = codea1("sandbox", "check", "--json")
    assert result.exit_code == 1
    assert [each["ok"] for each in one_object(result.stdout)["outcomes"]] == [False]


def test_an_unknown_sandbox_is_bad_input() -> None:
    refused("sandbox", "check", "lokal")
