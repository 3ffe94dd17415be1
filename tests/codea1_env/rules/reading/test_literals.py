"""What a literal is worth: read as the value that its text states, anything else refused, nothing executed."""

from __future__ import annotations

import ast
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env import values
from codea1_env.rules.reading.literals import LiteralError, encoded_literal


def read(text: str) -> bytes:
    return encoded_literal(ast.parse(text, mode="eval").body)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.text() | st.binary(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.sets(st.integers() | st.text() | st.floats(), max_size=3)
        | st.frozensets(st.text(), max_size=3)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(plain)
def test_what_is_written_of_a_plain_value_reads_as_the_same_value(value: Any) -> None:
    written = values.to_source(values.encode(value))
    assert written is not None
    assert read(written.expression) == values.encode(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("nan", float("nan")), ("[inf, -inf]", [float("inf"), float("-inf")]), ("-1.5e-07", -1.5e-07)),
        *(("1+2j", 1 + 2j), ("set(['b', 'a', 'b'])", {"a", "b"})),
    ],
)
def test_the_releases_own_spelling_is_understood(text: str, value: Any) -> None:
    assert read(text) == values.encode(value)


@pytest.mark.parametrize(
    "text",
    [
        *("N(1)", "[x for x in range(3)]", "x", "...", "{**{}}", "{[]: 1}", "-'a'", "-True", "1 + 2"),
        *("f'{1}'", "not 1"),
        *("Fraction(1, 0)", "Fraction('1e1000000000')", "float('12')", "bytearray(10000000000)"),
        *("set(range(10000000000))", "set(range(10000000000), *[1])", "deque('ab', maxlen=1)", "'a'.reshape(1)"),
        *("numpy.array([1], dtype='S100000000000')", "numpy.array(range(9), dtype='<i8')"),
        "numpy.array([1] , dtype='S999999').reshape((1, -5))",
        *("datetime.date(0, 0, 0)", "Decimal('x')", "Decimal(**{'value': '1'})", f"'{'x' * 70_000}'"),
        "__import__('this')",
    ],
)
def test_anything_else_is_refused_and_nothing_is_executed(text: str) -> None:
    with pytest.raises(LiteralError):
        read(text)
    assert "this" not in sys.modules


def test_the_refusal_names_the_part_that_is_no_literal() -> None:
    with pytest.raises(LiteralError, match=r"not a literal: open\('x'\)"):
        read("[1, open('x')]")
