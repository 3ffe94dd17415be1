"""Functions and generators go to calls and loops only: their addresses must decide nothing."""

from __future__ import annotations

import pytest

from codea1_env.facts.submissions import RejectionReason
from tests.support.replies import block, reasons


@pytest.mark.parametrize(
    "claim",
    [
        "[i for i in {lambda: 1, lambda: 2}][0]() + f(7) == 29",
        "sorted([lambda: 1, lambda: 2], key=str)[0]() == f(1)",
        "int('%s' % (lambda: f(6)), 16) % 2 == 0",
        "int(f'{(x for x in [f(5)])}'[-4], 16) % 2 == 0",
        "str(lambda: f(1)) == ''",
        "{(lambda: 1) if f(1) else (lambda: 2)} == {1}",
        "[(i for i in [f(1)])] == []",
        "f(1) == (lambda: 36)",
        "(x for x in [f(1)]).gi_running == 0",
    ],
)
def test_elsewhere_they_may_not_be(claim: str) -> None:
    suite = block(f"assert {claim}")
    assert reasons(suite) == [RejectionReason.FORBIDDEN_NAME]


@pytest.mark.parametrize(
    "tests",
    [
        "assert sorted(f([3, 1]), key=lambda x: -x) == [3, 1]",
        "assert all(x > 0 for x in f([3, 1]))",
        "assert sum(x for x in (y for y in f([3, 1]))) == 4",
        "assert [*(x for x in f([3, 1]))] == [1, 3]",
        "assert (lambda x: x + 1)(f(1)) == 2",
        "key = lambda x: -x\nassert sorted(f([3, 1]), key=key) == [3, 1]",
        "assert f(lambda x: x, 1) == 1",
        "assert list(map(lambda x: x + 1, f([1, 2]))) == [2, 3]",
    ],
)
def test_where_they_are_used_at_once_they_may(tests: str) -> None:
    suite = block(tests)
    assert len(suite.cases) == 1, suite.rejections


def test_a_name_for_a_function_is_no_way_around() -> None:
    tests = "a = lambda: 1\nb = lambda: 2\nassert [i for i in {a, b}][0]() == f(1)"
    suite = block(tests)
    assert suite.cases == ()
