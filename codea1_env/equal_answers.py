"""Equal answers, equal verdicts: no expression may tell apart what counts as equal.

`str(f(1))`, `f(1) != 0.3` and `list(f('ba'))` have other values for 0.3 and 0.30000000000000004, or for equal dicts in
another order. A candidate whose answers to all calls that a test has made of it equal the solution's has passed the
test, whatever the test makes of them (method.md 2.2, D15).
"""

from __future__ import annotations

from collections.abc import Sequence

from codea1_env.rules.ruleset import Comparison
from codea1_env.rules.validation import values_equal
from codea1_env.sandbox.interface import TOO_MANY, Applied
from codea1_env.values import Malformed

__all__ = ["equal_answers"]


def equal_answers(mine: Sequence[Applied], others: Sequence[Applied], comparison: Comparison) -> bool:
    """Whether two programs have answered all that one test asked them alike.

    Where the test goes on to ask different things, it does so for differences that do not count: the answers before
    that decide, and there must be one.

    Args:
        mine: how the test has used one program.
        others: how it has used the other, whose answers are expected.
        comparison: when two values count as the same.
    """
    if TOO_MANY in mine or TOO_MANY in others:
        return False
    n_equal = 0
    for one, other in zip(mine, others, strict=False):
        if not _same(other.arguments, one.arguments, comparison):
            break
        if one.answer is None or other.answer is None or not _same(other.answer, one.answer, comparison):
            return False
        n_equal += 1
    return n_equal > 0


def _same(expected: bytes, actual: bytes, comparison: Comparison) -> bool:
    try:
        return values_equal(expected, actual, comparison)
    except Malformed:  # nobody has looked at these bytes before
        return False
