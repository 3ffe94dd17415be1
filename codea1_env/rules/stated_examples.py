"""The answers in the examples of a problem's statement, so that tests that copy them are recognised."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from codea1_env import values
from codea1_env.facts.answers import OutputForm
from codea1_env.facts.call_forms import PLAIN_CALLS, CallForms
from codea1_env.facts.submissions import TestCase
from codea1_env.rules.canonical_calls import CanonicalCalls, calls_of, with_arguments
from codea1_env.rules.reading.in_place import called_in_place
from codea1_env.rules.replies import read_suite
from codea1_env.rules.ruleset import Reading


@lru_cache(maxsize=4096)
def stated_answers(
    examples: tuple[str, ...],
    entry_point: str,
    canonical: CanonicalCalls | None = None,
    output: OutputForm | None = None,
    forms: CallForms = PLAIN_CALLS,
) -> Mapping[str, bytes | None]:
    """Return the calls that the examples make, each with its encoded answer.

    Args:
        examples: asserts, as in `Problem.examples`; those that are not tests are skipped.
        entry_point: the function under test.
        canonical: the form of the calls; None: as the examples write them.
        output: what counts in an output, for programs on standard input.
        forms: what tests of the problem may do besides plain calls.

    Returns:
        The answer is None where an example does not state the value of its call.
    """
    cases = [
        case
        for example in examples
        for case in read_suite(
            example, Reading.STRICT, entry_point=entry_point, tests_per_suite=None, output=output, forms=forms
        ).cases
    ]
    found: dict[str, bytes | None] = {}
    for case in sorted(cases, key=lambda case: case.direct):  # direct cases last: they state the call's value
        calls = map(_without_types, _calls(case, entry_point, canonical, forms))
        found.update(dict.fromkeys(calls, case.predicted if case.direct else None))
    return found


def _calls(case: TestCase, entry_point: str, canonical: CanonicalCalls | None, forms: CallForms) -> tuple[str, ...]:
    if case.direct or not forms.in_place:
        return calls_of(case, canonical)
    found = calls_of(replace(case, calls=called_in_place(case.expression, entry_point)), canonical)
    return (*found, *map(with_arguments, found))


def is_stated(case: TestCase, calls: Sequence[str], value: bytes, stated: Mapping[str, bytes | None]) -> bool:
    """Whether the statement answers a case: its call with this value or, if it is not direct, all of its calls.

    A case that writes `2.0` for 2, or a tuple for a list, is answered too.

    Args:
        case: a case of the strict reading.
        calls: its calls, in the same form as those of the examples.
        value: the solution's value, encoded.
        stated: from `stated_answers`.
    """
    if not case.direct:
        return bool(calls) and stated.keys() >= set(map(_without_types, calls))
    call = _without_types(calls[0])
    if call not in stated:
        return False
    answer = stated[call]
    return answer is None or values.equal(value, answer, rel_tol=_REL_TOL, nan_equal=True)


_REL_TOL = 1e-6  # statements round
_WHOLE = re.compile(r"(?<=\d)\.0(?!\d)")


def _without_types(call: str) -> str:
    """Return a call with whole numbers as integers and tuples and sets as lists; unchanged if it holds a text.

    It edits the source text, because it runs for each case of every suite.
    """
    if "'" in call or '"' in call:
        return call
    # On such short texts this is several times as fast as `str.translate`.
    call = call.replace("(", "[").replace("{", "[").replace(")", "]").replace("}", "]").replace(",]", "]")
    if "." in call:
        call = _WHOLE.sub("", call)
    return call.replace("True", "1").replace("False", "0") if "e" in call else call
