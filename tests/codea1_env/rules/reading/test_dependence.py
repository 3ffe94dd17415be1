"""Asserts that hold whatever the entry point returns, or that need not call it, are dropped."""

from __future__ import annotations

import pytest

from codea1_env.facts.submissions import COUNTED_AS_INVALID, RejectionReason, Suite
from tests.support.replies import bare, block

IMPORTS = "import itertools\nfrom itertools import permutations, compress\n"

NEED_NOT_CALL = [
    *("1 or f(1)", "0 and f(1) or True", "True if 1 else f(1)", "f(1) if 0 else True", "(f(1) if 1 else 2) == 2"),
    *("0 > 1 > f(1)", "all(f(i) for i in [])", "all(f(i) for i in range(0))", "all(f(i) for i in range(3, 1))"),
    *("all(f(i) for i in range(1, 2, 0))", "all(f(i) for i in [1, 2] if i > 2)", "all(f(i) for i in 'a' for j in '')"),
    *("all(f(i) for i in [1][1:])", "all(f(i) for i in [*[]])", "all(f(i) for i in compress([1], [0]))"),
    *("[f(i) for i in {}] == []", "[f(i) for i in [1] * 0] == []", "list(f(i) for i in zip([1], [])) == []"),
    *("list(map(lambda i: f(i), [])) == []", "map(lambda i: f(i), [1]) != 1", "callable(lambda: f(1))"),
    *("(lambda g: 1)(lambda: f(1)) == 1", "(lambda x: 1)(f(1)) == 1", "(lambda x, y: y)(f(1), 2) == 2"),
    "(lambda list: [f(i) for i in list([1])])(lambda x: []) == []",
    "(lambda any: any(f(i) for i in [1]))(lambda x: 1)",
    *("(f(1), 5)[1] == 5", "[5, f(1)][-2] == 5", "f(1) * 0 == 0", "0 * f(1) == 0", "len([f(1)]) == 1"),
]
DECIDES_NOTHING = [
    *("f(1) or True", "f(1) or f(2) or 3", "f(1) == 1 or 2 > 1", "not (f(1) and 0)", "bool(f(1) or True)"),
    *("(f(1) or True) == True", "(f(1) or True) is True", "(f(1), 'never empty')", "[f(1)]", "{f(1)}", "{1: f(1)}"),
    *("bool((f(1),))", "True if f(1) else 1", "any([f(1), True])", "any((f(1) == 2, 1 == 1))"),
]
COMPARES_WITH_ITSELF = [
    *("f(1) == f(1)", "not f(1) != f(1)", "f(1) == f( 1 )", "f(1) <= f(1)", "f(1) in [f(1)]", "f(1) in (2, f(1))"),
    *("[f(1)] == [f(1)]", "f(2) + 1 == f(2) + 1", "0 <= f(1) <= f(1)", "f(1) - f(1) == 0", "f(1) // f(1) == 1"),
    "bool(f(1) == f(1)) is True",
]


def read(condition: str) -> Suite:
    return block(f"{IMPORTS}assert {condition}")


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        *((condition, "need not call") for condition in NEED_NOT_CALL),
        *((condition, "whatever") for condition in DECIDES_NOTHING),
        *((condition, "itself") for condition in COMPARES_WITH_ITSELF),
    ],
)
def test_what_holds_whatever_is_returned_is_no_test(condition: str, why: str) -> None:
    suite = read(condition)
    assert suite.cases == ()
    (rejection,) = suite.rejections
    assert rejection.reason is RejectionReason.NO_ENTRY_POINT_CALL
    assert rejection.reason in COUNTED_AS_INVALID
    assert why in rejection.detail


@pytest.mark.parametrize("way", ["x = f(1)\nassert x == x", "x = f(1) == f(1)\nassert x", "k = 1\nassert f(k) == f(1)"])
def test_names_hide_nothing(way: str) -> None:
    assert bare(way).cases == ()


@pytest.mark.parametrize(
    "condition",
    [
        *("f(1) == 2 and f(2) == 3", "f(1) == 2 or f(1) == 3", "f(1) if f(2) else f(3)", "(f(1) or []) == []"),
        *("0 <= f(1) <= 2", "f([3, 1]) == f([1, 3])", "f([1]) == sorted(f([1]))", "len(f('a')) == len(set(f('a')))"),
        *("f(f(1)) == f(1)", "f(1) in (f(2), f(3))", "f(3) - f(2) == 1", "all(f(i) >= 0 for i in range(10))"),
        *("all(f(i) >= 0 for i in range(10, 0, -3))", "all(f(x) == y for x, y in [(1, 2), (2, 3)])"),
        *("all(f(x) == y for x, y in zip([1, 2], (3, 4)))", "all(f(x) == y for x, y in {1: 2}.items())"),
        *("all(f(x) for i, x in enumerate(sorted([2, 1])))", "all(f([1, 2][i]) for i in range(len([1, 2])))"),
        *("all(f(i) >= 0 for i in range(2 + 1))", "all(f(x) for x in [1] + [2] * (3 - 1))"),
        *("all(f(x) for x in [1] + [2] * 3)", "all(f(x) for x in [i * i for i in range(3)])"),
        "all(f(list(p)) == 6 for p in permutations([1, 2, 3]))",
        "all(f(a, b) == f(b, a) for a, b in itertools.product([1, 2], [3, 4]))",
        *("all(isinstance(x, int) for x in f(1))", "all(isinstance(x, int) for x in f(1) if x)"),
        *("[x for x in 'ab' if f(x)] == ['a']", "list(map(lambda x: f(x), [1, 2])) == [1, 4]"),
        *("(lambda x: f(x) + 1)(1) == 2", "(lambda x: x + 1)(f(1)) == 2", "','.join(f(x) for x in 'ab') == 'a,b'"),
        *("len({f(i) for i in range(3)}) == 1", "(f(1), f(2)) == (1, 2)", "(0, f(1))[1] == 1", "f(1)[0] == 2"),
        *("{'a': f(1)} == {'a': 1}", "f'{f(1)}' == '1'", "not f(1)", "any([f(1), f(2)])", "isinstance(f(1), int)"),
    ],
)
def test_what_depends_on_what_is_returned_is_a_test(condition: str) -> None:
    suite = read(condition)
    assert suite.rejections == ()
    assert len(suite.cases) == 1
