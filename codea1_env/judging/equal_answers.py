"""Equal answers get equal verdicts: an expression must not distinguish values that count as equal.

`str(f(1))`, `f(1) != 0.3` and `list(f('ba'))` have different values for 0.3 and 0.30000000000000004, or for equal dicts
in another order. So a candidate that fails a harness case passes it all the same under two conditions. In a fresh
process, it answers each call that the test makes of the *solution* like the solution (`answers_equal`), to the last
call. And it has not answered otherwise in its own run before (`is_equal_so_far`). What the test does with the answers
then does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from codea1_env.facts.answers import Comparison
from codea1_env.facts.verdicts import TOO_MANY, EntryPointCall, Outcome, OutcomeKind
from codea1_env.values import Malformed

_SEQUENCES_AND_SETS = tuple(b'{"%b":[' % tag for tag in (b"t", b"q", b"s", b"z"))


def can_be_repeated(of_solution: Sequence[EntryPointCall]) -> bool:
    """Whether the record of a test on the solution is complete and holds at least one call."""
    return bool(of_solution) and all(call is not TOO_MANY and call.answer is not None for call in of_solution)


def is_equal_so_far(
    of_solution: Sequence[EntryPointCall],
    of_candidate: Iterable[EntryPointCall],
    comparison: Comparison,
    *,
    or_items: bool = False,
) -> bool:
    """Whether the candidate has answered like the solution, up to the first call with other arguments.

    After that call the test makes other calls, because of differences that do not count.

    Args:
        of_solution: the calls that one test makes of the solution; see `can_be_repeated`.
        of_candidate: the calls that it makes of the candidate.
        comparison: when two values count as equal.
        or_items: whether equal items of an answer suffice.
    """
    for expected, actual in zip(of_solution, of_candidate, strict=False):
        if actual is TOO_MANY or expected.answer is None or actual.answer is None:
            return False
        if not _equal(expected.arguments, actual.arguments, comparison):
            return True
        pair = expected.answer, actual.answer
        if not (answers_equal(*pair, comparison) or (or_items and yields_equal_items(*pair, comparison))):
            return False
    return True


def answers_equal(expected: Outcome, actual: Outcome, comparison: Comparison) -> bool:
    """Whether two programs have answered one call alike.

    Alike means: equal values, the same class of exception, or equal items and the same class of exception after them;
    and equal arguments after the call.

    Args:
        expected: the solution's answer.
        actual: the candidate's answer.
        comparison: when two values count as equal.
    """
    if expected.kind is not actual.kind or not _both(expected.arguments, actual.arguments, comparison):
        return False
    if expected.kind is OutcomeKind.VALUE:
        return _both(expected.value, actual.value, comparison)
    if expected.error_type != actual.error_type or expected.kind is OutcomeKind.ERROR:
        return expected.error_type == actual.error_type
    return expected.items is not None and _both(expected.items, actual.items, comparison)


def yields_equal_items(expected: Outcome, actual: Outcome, comparison: Comparison) -> bool:
    """Whether the candidate's answer is not plain data but yields the items of the solution's sequence or set."""
    if expected.value is None or actual.items is None:
        return False
    items = actual.items
    if expected.value.startswith((b'{"b":', b'{"B":')):
        numbers = bytes.fromhex(expected.value[6:-2].decode())
        return items == b"[%b]" % b",".join(b"%d" % number for number in numbers)
    if expected.value.startswith(_SEQUENCES_AND_SETS):
        items = expected.value[: len(_SEQUENCES_AND_SETS[0]) - 1] + items + b"}"
    return _equal(expected.value, items, comparison)


def _both(expected: bytes | None, actual: bytes | None, comparison: Comparison) -> bool:
    """Whether both are missing, or both exist and are equal."""
    if not expected or not actual:
        return expected == actual
    return _equal(expected, actual, comparison)


def _equal(expected: bytes, actual: bytes, comparison: Comparison) -> bool:
    try:
        return comparison.equal(expected, actual)
    except Malformed:  # these bytes have not been checked before
        return False
