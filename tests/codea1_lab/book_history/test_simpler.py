from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codea1_lab.book_history.simpler import normalised, simpler, size

literals = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-99, 99)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=50)
@given(st.lists(literals, min_size=1, max_size=3))
def test_what_comes_out_is_a_smaller_call_of_the_same_function(arguments: list[object]) -> None:
    expression = f"f({', '.join(map(repr, arguments))})"
    before = size(normalised(expression))
    found = simpler(expression)
    assert len(found) == len(set(found))
    for text in found:
        assert text.startswith("f(")
        assert size(text) < before
    assert found == sorted(found, key=lambda text: (size(text), text))


@pytest.mark.parametrize(
    ("expression", "among"),
    [
        ("f([1, 2, 3])", {"f([])", "f([1])", "f([2, 3])", "f([1, 2])", "f([1, 3])"}),
        ("f('abc')", {"f('')", "f('a')", "f('bc')"}),
        ("f(-7)", {"f(7)"}),
        ("f(-17)", {"f(17)", "f(-0)", "f(-8)"}),
        ("f({'ab': 12})", {"f({})", "f({'a': 12})", "f({'ab': 0})"}),
        ("f(x=[1])", {"f(x=[])"}),
        ("f(100)", {"f(0)", "f(1)", "f(50)", "f(99)"}),
        ("f({1, 2})", {"f({1})", "f({2})"}),
        ("f(b'ab')", {"f(b'')", "f(b'a')"}),
    ],
)
def test_each_kind_of_literal_shrinks(expression: str, among: set[str]) -> None:
    assert among <= set(simpler(expression))


@pytest.mark.parametrize("expression", ["f()", "f(None)", "f(True)", "f([])", "f(0)", "f", "1 + 2"])
def test_the_smallest_have_nothing_below_them(expression: str) -> None:
    assert simpler(expression) == []


def test_notation_makes_no_difference() -> None:
    assert normalised('f( [1,2] , "a")') == "f([1, 2], 'a')"
