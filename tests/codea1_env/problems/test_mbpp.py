from __future__ import annotations

import pytest

from codea1_env.problems import GoldenCase, GoldenHarness
from codea1_env.problems.layouts import read_row
from codea1_env.problems.problem import Refusal
from codea1_env.problems.refusals import RefusedRow
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


def test_tests_with_objects_are_refused() -> None:
    with pytest.raises(RefusedRow, match="creates objects for the tests") as caught:
        read_row(MBPP | {"test_setup_code": "root = Node(1)"})
    assert caught.value.refusal is Refusal.OBJECTS
