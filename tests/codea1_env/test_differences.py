"""The one small change between a program and the solution, as people are told it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env.differences import comparable, difference, is_same

SOLUTION = '''
def f(x):
    """Doubles."""
    if x < 0:  # nothing
        return None
    y = x * 2
    return y
'''
TOLD = [
    ("y = x * 2", "y = x * 3", "line 6 is `y = x * 3`, in the solution it is `y = x * 2`"),
    ("    y = x * 2\n", "    y = x * 2\n    y += 1\n", "line 7 is `y += 1`, which the solution does not have"),
    ("    if x < 0:  # nothing\n        return None\n", "", "`if x < 0:` / `return None` is missing before line 4"),
    ("x < 0:  # nothing", "(x<1):", "one line is `if x < 1:`, in the solution it is `if x < 0:`"),
]


@pytest.mark.parametrize(("right", "wrong", "sentence"), TOLD)
def test_one_small_change_is_told(right: str, wrong: str, sentence: str) -> None:
    found = difference(SOLUTION.replace(right, wrong), SOLUTION)
    assert found is not None
    assert found.sentence() == sentence


@pytest.mark.parametrize(
    "program",
    [
        SOLUTION,
        SOLUTION.replace("Doubles", "Twice").replace("  # nothing", ""),
        "def f(x):\n    return x + x\n",
        SOLUTION.replace("x < 0", "x < 1").replace("* 2", "* 3"),
        *("def f(x:\n", ""),
        "x = " + "(" * 500 + ")" * 500,
        "\n".join(f"x{n} = {n}" for n in range(1000)),
    ],
)
def test_equal_other_and_unreadable_programs_have_none(program: str) -> None:
    assert difference(program, SOLUTION) is None


@given(st.text(max_size=60))
def test_any_text_is_compared(text: str) -> None:
    difference(text, SOLUTION)


@pytest.mark.parametrize(
    ("program", "same"),
    [("def f(x):\n  return (x)  # so\n", True), ("def f(x):\n    return -x", False), ("def f(", False)],
)
def test_layout_does_not_make_another_program(program: str, same: bool) -> None:
    assert is_same(program, "def f(x):\n    'Return it.'\n    return x") is same


def test_programs_are_compared_without_comments_docstrings_and_layout() -> None:
    changed = SOLUTION.replace("x * 2", "((x) *3)").replace("Doubles", "Triples")
    assert comparable(SOLUTION, changed) == (
        "def f(x):\n    if x < 0:\n        return None\n    y = x * 2\n    return y",
        "def f(x):\n    if x < 0:\n        return None\n    y = x * 3\n    return y",
    )
    assert comparable(SOLUTION, "def f(x") == (SOLUTION, "def f(x")
