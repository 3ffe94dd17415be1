from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_agents.scripted.literals import call_text, literal, unique

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
hashable = st.recursive(scalars, lambda inner: st.tuples(inner, inner), max_leaves=4)
plain = st.recursive(
    hashable,
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(hashable, inner) | st.sets(hashable),
    max_leaves=8,
)


@given(plain)
def test_a_literal_is_ascii_and_reads_back_as_the_value_with_its_types(value: object) -> None:
    text = literal(value)
    assert text.isascii()
    back = ast.literal_eval(text)
    assert back == value
    assert literal(back) == text  # 1, 1.0 and True are equal, but not their literals


def test_equal_sets_read_alike_equal_values_of_other_types_are_kept_apart_and_keywords_have_names() -> None:
    one, other = {8, 0}, {0, 8}  # they share a slot of a small table, so these iterate in different orders
    assert list(one) != list(other)
    assert literal(one) == literal(other) == "{0, 8}"
    assert [repr(value) for value in unique([1, True, 1.0, 1, [2], [2]])] == ["1", "True", "1.0", "[2]"]
    assert call_text("f", (1, "x"), (None, "key")) == "f(1, key='x')"


@pytest.mark.parametrize("value", [float("nan"), object(), [len], frozenset({1})])
def test_values_without_a_literal_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="cannot be written as a literal"):
        literal(value)
