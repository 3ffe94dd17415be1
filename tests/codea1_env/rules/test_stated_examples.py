from __future__ import annotations

import pytest

from codea1_env import values
from codea1_env.rules.canonical_calls import CanonicalCalls, calls_of
from codea1_env.rules.replies import read_suite
from codea1_env.rules.ruleset import Reading
from codea1_env.rules.validation import is_stated, stated_answers

CANONICAL = CanonicalCalls("f", ("x", "y"))
STATED = stated_answers(("assert f(2, 3) == 5", "assert f([1, (2, 3)], {4}) == 6"), "f", CANONICAL)


@pytest.mark.parametrize(
    ("line", "value", "copied"),
    [
        ("assert f(2, 3) == 5", 5, True),
        ("assert f(2.0, 3) == 5", 5.0, True),
        ("assert f(2 + 0j, 3) == 5", 5 + 0j, False),  # a sum; the solution's run would say what is called
        ("assert f(y=3.0, x=2) == 5", 5, True),
        ("assert f((1, [2.0, 3]), [4]) == 6", 6, True),
        ("assert f([True, (2, 3)], {4}) == 6", 6, True),
        ("assert f(2.5, 3) == 5.5", 5.5, False),
        ("assert f(3, 2) == 5", 5, False),
        ("assert f('2', 3) == 5", 5, False),
        ("assert f(float('inf'), 3) == 5", 5, False),
    ],
)
def test_an_example_in_other_types_is_a_copy(line: str, value: object, copied: bool) -> None:
    (case,) = read_suite(line, Reading.STRICT, entry_point="f", tests_per_suite=None).cases
    assert is_stated(case, calls_of(case, CANONICAL), values.encode(value), STATED) is copied


def test_a_default_that_is_written_out_makes_no_new_example() -> None:
    canonical = CanonicalCalls.of("def f(x, y=None): return x", "f")
    (case,) = read_suite("assert f(2, None) == 2", Reading.STRICT, entry_point="f", tests_per_suite=None).cases
    stated = stated_answers(("assert f(2) == 2",), "f", canonical)
    assert is_stated(case, calls_of(case, canonical), values.encode(2), stated)
