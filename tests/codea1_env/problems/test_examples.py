from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env.problems.examples import find_examples


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (">>> f(1)\n2", "assert f(1) == 2"),
        ('    >>> f("a\\nb")\n    \'x\'\n    """', "assert f('a\\nb') == 'x'"),
        (">>> f([])\n>>> 1", "assert f([]) == None"),
        (">>> f(1) == 2", "assert f(1) == 2"),
        (">>> round(f(1), 2)\n0.5", "assert round(f(1), 2) == 0.5"),
        (">>> f([1,\n...    2])\n[3,\n4]", "assert f([1, 2]) == [3, 4]"),
        ("f(1) == 2", "assert f(1) == 2"),
        ("f(1) => 2", "assert f(1) == 2"),
        ("f(1)==>true", "assert f(1) == True"),
        ("* f(1, 2) -> [3]", "assert f(1, 2) == [3]"),
        ('f("(", 5) ➞ False', "assert f('(', 5) == False"),
        ("f(1)   # returns 'x'", "assert f(1) == 'x'"),
        ("f(1) should return -2.", "assert f(1) == -2"),
        ("for f(1) = 2", "assert f(1) == 2"),
        ("f(1) returns 'No' (for a reason)", "assert f(1) == 'No'"),
        ("f('5', 19) -> 19 - 5 - 6 = 8", "assert f('5', 19) == 8"),
        ("f([\n  [1],\n  [2]\n], 1) == [(0, 0),\n (1, 1)]", "assert f([[1], [2]], 1) == [(0, 0), (1, 1)]"),
        ("assert f((1, 2)) == 3", "assert f((1, 2)) == 3"),
        ("import math\nassert math.isclose(f(10), 4.5)", "assert math.isclose(f(10), 4.5)"),
        ("assert f([1,\n 2]) == 3", "assert f([1, 2]) == 3"),
    ],
)
def test_a_stated_example_becomes_an_assert(statement: str, expected: str) -> None:
    assert find_examples(statement, "f") == (expected,)


@pytest.mark.parametrize(
    "statement",
    [
        "f(n) == f(n - 1) + f(n - 2)",
        "f(a) => False",
        "f(1) == 2 or 3",
        "f(1) = 2, f(2) = 3",
        'f("Earth") ==> ("Venus")',
        "f(1) == 2 if lucky",
        "f(1) returns a list",
        ">>> f([1, 0]) [0, 1]\n",
        ">>> g(1)\n2",
        ">>> f(x)\n2",
        ">>> print(f(1))\nhello world",
        "assert g(1) == 2",
        "assert f(unknown) == 2",
        "assert f(1) ==",
        "f(1",
        "It calls f(1) == 2 somewhere.",
        "def f(x=1) -> 2",
    ],
)
def test_what_is_not_plainly_an_example_is_left_alone(statement: str) -> None:
    assert find_examples(statement, "f") == ()


def test_an_example_that_stands_twice_is_given_once() -> None:
    assert find_examples("f(1) == 2\nf(2) == 3\nf(1) == 2", "f") == ("assert f(1) == 2", "assert f(2) == 3")


PIECES = [">>> ", "f(", ")", "1", "'", '"', "==", "\n", "->", "assert ", "[", "]", "\\", "é", " "]


@given(st.lists(st.sampled_from(PIECES)).map("".join) | st.text())
def test_any_text_gives_only_asserts_that_parse(text: str) -> None:
    for example in find_examples(text, "f"):
        (statement,) = ast.parse(example).body
        assert isinstance(statement, ast.Assert)
