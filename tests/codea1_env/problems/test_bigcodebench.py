from __future__ import annotations

from dataclasses import replace

import pytest

from codea1_env.errors import BrokenInput
from codea1_env.judging.problem_check import CheckStatus, check_problems
from codea1_env.problems.layouts import read_row
from codea1_env.sandbox import Sandbox
from tests.support.data_set_rows import BIGCODEBENCH

RIGHT = "def task_func(words, power=2):\n    return {w: n ** power for w, n in Counter(words).items() if n > 1}\n"


def test_a_row_is_recognised() -> None:
    problem = read_row(BIGCODEBENCH)
    assert (problem.id, problem.entry_point, problem.source) == ("BigCodeBench/9000", "task_func", "BigCodeBench")
    assert problem.examples


@pytest.mark.parametrize(
    ("program", "status"),
    [
        (RIGHT, CheckStatus.OK),
        (RIGHT.replace("n ** power", "math.pow(n, power)"), CheckStatus.OK),  # with the imports of the statement
        (RIGHT.replace("n ** power", "n ** 2"), CheckStatus.WRONG),  # only test_power tells
        (RIGHT.replace("n > 1", "n > 0"), CheckStatus.WRONG),
    ],
)
def test_every_method_of_the_test_class_counts(sandbox: Sandbox, program: str, status: CheckStatus) -> None:
    problem = replace(read_row(BIGCODEBENCH), solution=program, examples=())
    assert [check.status for check in check_problems([problem], sandbox, runs=1)] == [status]


def test_a_row_without_a_code_prompt_is_read_from_the_complete_one() -> None:
    assert '"""' in read_row(BIGCODEBENCH | {"code_prompt": None}).solution


def test_a_solution_of_another_function_is_broken() -> None:
    with pytest.raises(BrokenInput, match="does not define other"):
        read_row(BIGCODEBENCH | {"entry_point": "other"})
