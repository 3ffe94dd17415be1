"""What the examples of a problem's statement say, so that a test which asks only that is known for a copy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from codea1_env import values
from codea1_env.facts.submissions import TestCase
from codea1_env.rules.canonical_calls import CanonicalCalls, calls_of
from codea1_env.rules.replies import read_suite
from codea1_env.rules.ruleset import Reading


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
        calls = map(_without_types, calls_of(case, canonical))
        found.update(dict.fromkeys(calls, case.predicted if case.direct else None))
    return found


def is_stated(case: TestCase, calls: Sequence[str], value: bytes, stated: Mapping[str, bytes | None]) -> bool:
    """Whether the statement gives all that a case asks: its call with this value, or each of its calls.

    Args:
        case: of the strict reading.
        calls: what it calls, written canonically as the examples are. Who writes `2.0` for 2, or a tuple for a list,
            copies, too.
        value: the solution's, encoded.
        stated: see `stated_answers`.
    """
    if not case.direct:
        return bool(calls) and stated.keys() >= set(map(_without_types, calls))
    call = _without_types(calls[0])
    if call not in stated:
        return False
    answer = stated[call]
    return answer is None or values.equal(value, answer, rel_tol=_CLOSE, nan_equal=True)


_CLOSE = 1e-6  # statements round
_WHOLE = re.compile(r"(?<=\d)\.0(?!\d)")


def _without_types(call: str) -> str:
    """Return a call with whole numbers as integers, and with lists for tuples and sets; as it is if it holds text.

    By its text, since each case of every suite is looked at.
    """
    if "'" in call or '"' in call:
        return call
    # Several times as fast as `str.translate` on a text so short.
    call = call.replace("(", "[").replace("{", "[").replace(")", "]").replace("}", "]").replace(",]", "]")
    if "." in call:
        call = _WHOLE.sub("", call)
    return call.replace("True", "1").replace("False", "0") if "e" in call else call
