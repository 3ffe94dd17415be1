"""What the examples of a problem's statement say, so that a test which asks only that is known for a copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from codea1_env import values
from codea1_env.rules.canonical_calls import CanonicalCalls, calls_of
from codea1_env.rules.replies import read_suite
from codea1_env.rules.ruleset import Reading
from codea1_env.submissions import TestCase


@lru_cache(maxsize=4096)
def stated_answers(
    examples: tuple[str, ...], entry_point: str, canonical: CanonicalCalls | None = None
) -> Mapping[str, bytes | None]:
    """Return the calls that the examples make, as a case writes them, each with its encoded answer.

    Args:
        examples: asserts, as in `Problem.examples`; one that is no test is left out.
        entry_point: the problem's.
        canonical: how calls are written; None: as the examples do.

    Returns:
        The answer is None where an example says something else of a call than what it equals.
    """
    cases = [
        case
        for example in examples
        for case in read_suite(example, Reading.STRICT, entry_point=entry_point, tests_per_suite=None).cases
    ]
    found: dict[str, bytes | None] = {}
    for case in sorted(cases, key=lambda case: case.direct):  # what a call equals says most
        found.update(dict.fromkeys(calls_of(case, canonical), case.predicted if case.direct else None))
    return found


def is_stated(case: TestCase, calls: Sequence[str], value: bytes, stated: Mapping[str, bytes | None]) -> bool:
    """Whether the statement gives all that a case asks: its call with this value, or each of its calls.

    Args:
        case: of the strict reading.
        calls: what it calls, written as in `stated`.
        value: the solution's, encoded.
        stated: see `stated_answers`.
    """
    if not case.direct:
        return bool(calls) and stated.keys() >= set(calls)
    if calls[0] not in stated:
        return False
    answer = stated[calls[0]]
    return answer is None or values.equal(value, answer, rel_tol=_CLOSE, nan_equal=True)


_CLOSE = 1e-6  # statements round
