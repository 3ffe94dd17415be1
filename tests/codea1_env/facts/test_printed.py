"""Printed outputs that differ in numbers only."""

import pytest

from codea1_env import values
from codea1_env.facts.answers import nearly_equal_texts

NEAR = [("2.5", "2.500000"), ("1.0", "1.0000009"), ("a 1e3 b", "a 1000.0001 b"), ("-0.5\n2", "-.5\n2"), ("2", "2.0")]
FAR = [
    ("2.5", "2.6"), ("2.5", "2.5 2.5"), ("a", "b"), ("1.5 x", "1.5\nx"), ("7", "8"), ("1000000000", "1000000001"),
    ("2.5", "nan"), ("inf", "1e999"), ("1.5", "0x1.8p0"), ("1.5", "1_.5"), ("2.5", ""),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "found", "is_near"), [(*p, True) for p in NEAR] + [(*p, False) for p in FAR])
def test_numbers_within_the_tolerance_are_equal_and_nothing_else(expected: str, found: str, is_near: bool) -> None:
    assert nearly_equal_texts(values.encode(expected), values.encode(found), 1e-6) is is_near


def test_values_that_are_no_texts_are_not_near() -> None:
    assert not nearly_equal_texts(values.encode(2.5), values.encode(2.5000001), 1e-6)
