from __future__ import annotations

import pytest

from codea1_env.errors import BrokenInput
from codea1_env.problems.layouts import read_row
from tests.support.data_set_rows import ULT


def test_the_code_is_the_solution_with_the_imports_of_the_evaluator_and_no_golden_tests() -> None:
    problem = read_row(ULT)
    assert (problem.id, problem.entry_point, problem.golden) == ("ULT/12", "root", ())
    assert problem.solution == ULT["code"]
    assert problem.imports == "import math\nfrom typing import List"


def test_a_prompt_that_does_not_show_the_function_is_followed_by_its_declaration() -> None:
    assert read_row(ULT).statement.endswith("none.\n\ndef root(numbers: List[float]) -> float:\n")
    shown = 'def root(numbers):\n    """The root of the sum."""\n'
    assert read_row(ULT | {"prompt": shown}).statement == shown


def test_code_of_another_function_is_broken() -> None:
    with pytest.raises(BrokenInput, match="the solution does not define leaf"):
        read_row(ULT | {"func_name": "leaf"})
