"""What holds for all problems of the TOML files here: they are in order, and golden tests tell right from wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from codea1_env.facts.submissions import RejectionReason
from codea1_env.facts.verdicts import Verdict
from codea1_env.judging.golden import run_golden
from codea1_env.judging.problem_check import CheckStatus, check_problems
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox import Sandbox
from tests.support.replies import reasons
from tests.support.several_answers import Example, each_of, examples_of, judged, passed_in_python

EXAMPLES = {
    name: examples_of(Path(__file__).with_name(f"{name}.toml")) for name in ("functions", "in_place", "several_answers")
}


@pytest.mark.parametrize("examples", EXAMPLES.values(), ids=EXAMPLES)
def test_all_problems_are_in_order(sandbox: Sandbox, examples: list[Example]) -> None:
    assert len(examples) == 10
    assert all(len(each.problem.wrong_programs) == 3 for each in examples)
    found = check_problems([each.problem for each in examples], sandbox)
    assert [(each.problem_id, each.detail) for each in found if each.status is not CheckStatus.OK] == []


@each_of(*EXAMPLES.values())
def test_right_programs_pass_and_wrong_ones_fail_the_golden_tests(sandbox: Sandbox, example: Example) -> None:
    wrong = [each.program for each in example.problem.wrong_programs]
    programs = [(example.problem, program) for program in [*example.right, *wrong]]
    found = run_golden(programs, sandbox, preset("fixed").comparison)
    assert [each.passed for each in found] == [True] * 5 + [False] * 3


@each_of(EXAMPLES["functions"], EXAMPLES["in_place"])
def test_verdicts_are_those_of_plain_python(sandbox: Sandbox, example: Example) -> None:
    """Tests as they are and, where functions are arguments, as conditions, too, which run in a harness."""
    tests, calls = [*example.golden], example.problem.calls
    if calls.functions:
        sides = [test.removeprefix("assert ").rsplit(" == ", 1) for test in tests]
        tests += [f"assert repr({left}) == repr({right})" for left, right in sides]
    programs = [example.problem.solution, *example.right, *(each.program for each in example.problem.wrong_programs)]
    reports = judged(sandbox, example.problem, programs, tests)
    for program, report, expected in zip(programs, reports, passed_in_python(programs, tests), strict=True):
        for test, suite, passes in zip(tests, report.suites, expected, strict=True):
            assert suite.cases, test
            assert set(reasons(suite.suite)) <= ({RejectionReason.DUPLICATE} if calls.in_place else set())
            passed = all(case.verdict is Verdict.PASSED for case in suite.cases)
            assert passed == passes, (program, test)
