from __future__ import annotations

from typing import Any

import pytest

from codea1_env.errors import BrokenInput
from codea1_env.problems import GoldenCase, GoldenHarness
from codea1_env.problems.layouts import read_row
from codea1_env.problems.refusals import Refusal, RefusedRow
from tests.support.data_set_rows import MBPP, MBPP_PLUS, MBPP_SANITIZED


def test_the_statement_ends_with_the_first_test_and_all_tests_are_golden() -> None:
    problem = read_row(MBPP)
    assert (problem.id, problem.entry_point) == ("Mbpp/9001", "double")
    assert problem.statement == "Write a function to double a number.\n\nassert double(2) == 4\n"
    assert problem.examples == ("assert double(2) == 4",)
    assert problem.golden == (
        GoldenCase("double(2)", "4"),
        GoldenCase("double(-1)", "-2"),
        GoldenCase("double(0)", "0"),
    )


def test_imports_of_the_tests_are_put_before_them() -> None:
    problem = read_row(MBPP_SANITIZED)
    assert problem.imports == "import math"
    harness = problem.golden[1]
    assert isinstance(harness, GoldenHarness)
    assert harness.source.startswith("import math")


def test_the_added_tests_of_mbpp_plus_are_golden_too() -> None:
    plain, plus = read_row(MBPP_PLUS | {"test": None}), read_row(MBPP_PLUS)
    assert len(plus.golden) == len(plain.golden) + 1
    assert (plain.licence, plus.licence) == ("CC-BY-4.0", "CC-BY-4.0 AND Apache-2.0")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (MBPP | {"test_list": 7}, "column 'test_list' holds int, not a list"),
        (MBPP | {"test_list": []}, "column 'test_list' is empty"),
        (MBPP | {"test_list": [7]}, "an item of 'test_list' holds int, not text"),
        (MBPP | {"challenge_test_list": ["oops("]}, "test 2 is not Python|test 3 is not Python"),
        (MBPP | {"test_list": ["assert triple(1) == 3"], "code": "triple = 3"}, "defines no top-level function"),
        (MBPP | {"task_id": None, "text": "x"}, "column 'task_id' is empty"),
    ],
)
def test_broken_rows_get_one_sentence(row: dict[str, Any], reason: str) -> None:
    with pytest.raises(BrokenInput, match=reason):
        read_row(row)


def test_tests_with_objects_are_refused() -> None:
    with pytest.raises(RefusedRow, match="makes objects") as caught:
        read_row(MBPP | {"test_setup_code": "root = Node(1)"})
    assert caught.value.refusal is Refusal.OBJECTS
