"""What holds for all problems of the TOML files here: they are in order, and golden tests tell right from wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from codea1_env.judging.golden_runs import run_golden
from codea1_env.judging.problem_check import CheckStatus, check_problems
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox import Sandbox
from tests.support.several_answers import Example, each_of, examples_of

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
