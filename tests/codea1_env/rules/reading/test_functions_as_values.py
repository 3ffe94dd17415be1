"""Functions and generators go to calls and loops only: their addresses must decide nothing."""

from __future__ import annotations

import pytest

from codea1_env.facts.submissions import RejectionReason
from tests.support.replies import accepted, rejected


@pytest.mark.parametrize(
    "tests",
    [
        "assert [i for i in {lambda: 1, lambda: 2}][0]() + f(7) == 29",
        "assert sorted([lambda: 1, lambda: 2], key=str)[0]() == f(1)",
        *("assert int('%s' % (lambda: f(6)), 16) % 2 == 0", "assert int(f'{(x for x in [f(5)])}'[-4], 16) % 2 == 0"),
        *("assert str(lambda: f(1)) == ''", "assert {(lambda: 1) if f(1) else (lambda: 2)} == {1}"),
        *("assert [(i for i in [f(1)])] == []", "assert f(1) == (lambda: 36)"),
        "assert (x for x in [f(1)]).gi_running == 0",
        "a = lambda: 1\nb = lambda: 2\nassert [i for i in {a, b}][0]() == f(1)",
    ],
)
def test_elsewhere_they_may_not_be(tests: str) -> None:
    assert rejected(tests) == [RejectionReason.FORBIDDEN_NAME]


@pytest.mark.parametrize(
    "tests",
    [
        *("assert sorted(f([3, 1]), key=lambda x: -x) == [3, 1]", "assert all(x > 0 for x in f([3, 1]))"),
        *("assert sum(x for x in (y for y in f([3, 1]))) == 4", "assert [*(x for x in f([3, 1]))] == [1, 3]"),
        *("assert (lambda x: x + 1)(f(1)) == 2", "key = lambda x: -x\nassert sorted(f([3, 1]), key=key) == [3, 1]"),
        *("assert f(lambda x: x, 1) == 1", "assert list(map(lambda x: x + 1, f([1, 2]))) == [2, 3]"),
    ],
)
def test_where_they_are_used_at_once_they_may(tests: str) -> None:
    accepted(tests)
