from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codea1_agents.evaluation.export import export_tests, write_rows
from codea1_env.errors import UserError
from codea1_env.judging.problem_check import CheckStatus, check_problems
from codea1_env.problems import GoldenCase, load_problems
from codea1_env.problems.problem import ProblemSet
from codea1_env.sandbox import Sandbox
from tests.support.scripted import scripted, written

TESTS = {
    "larger": [
        "assert larger(1, 2) == 2",
        "assert larger(4, 3) == 9",
        "import math\nassert larger(0, 1) == int(math.e - 1)",
    ],
    "sign": ["assert sign(7) == 1", "assert sign(7) == 1", "assert sign('x') == 0"],
}


@pytest.fixture
def tester() -> tuple[Any, Any]:
    return scripted(lambda observation, info: written(TESTS[info["problem_id"]]))


def test_the_file_has_confirmed_tests_for_the_same_problems(
    problems: ProblemSet, sandbox: Sandbox, tester: tuple[Any, Any], tmp_path: Path
) -> None:
    richer = ProblemSet("richer", tuple(replace(each, examples=("assert f(0) == 0",)) for each in problems))
    path = tmp_path / "new folder" / "tests.jsonl"
    found = export_tests(richer, tester[1], sandbox)
    assert found.n_tests == 3
    write_rows(path, found.rows)
    back = load_problems(path, strict=True)
    assert [replace(each, golden=()) for each in back] == [replace(each, golden=()) for each in richer]
    assert [len(each.golden) for each in back] == [2, 1]
    assert back[1].golden == (GoldenCase("sign(7)", "1"),)
    checked = check_problems([replace(each, examples=()) for each in back], sandbox)
    assert [check.status for check in checked] == [CheckStatus.OK] * 2
    found = export_tests(problems, tester[1], sandbox)
    assert found.rows[1]["golden"] == ["assert sign(7) == 1"]
    assert dict(found.rejections) == {"wrong_prediction": 1, "duplicate": 1, "solution_error": 1}


def test_a_tester_is_blind_without_a_coder(problems: ProblemSet, sandbox: Sandbox, tester: tuple[Any, Any]) -> None:
    export_tests(problems, tester[1], sandbox)
    assert {(o["program"], i["tester_view"]) for o, i in tester[0].asked} == {("", "blind")}
    tester[0].asked.clear()
    _, coder = scripted(lambda observation, info: "def seen(): pass")
    export_tests(problems, tester[1], sandbox, coder=coder)
    assert {(o["program"], i["tester_view"]) for o, i in tester[0].asked} == {("def seen(): pass", "white_box")}


def test_a_problem_without_a_test_has_no_row(problems: ProblemSet, sandbox: Sandbox, tmp_path: Path) -> None:
    _, named = scripted(lambda observation, info: "nothing" if info["problem_id"] == "sign" else None)
    found = export_tests(problems, named, sandbox, suites=2)
    assert (found.rows, found.without_tests, found.unavailable) == ([], ["sign"], ["larger"])
    with pytest.raises(UserError, match="no test was confirmed"):
        write_rows(tmp_path / "tests.jsonl", [])
    assert not (tmp_path / "tests.jsonl").exists()
