"""A second run of some candidates, reversed, in another process: a right answer must not depend on luck or on order."""

from __future__ import annotations

import hashlib

from codea1_env.facts.outcomes import Outcome, OutcomeKind
from codea1_env.rules.ruleset import Comparison
from codea1_env.rules.validation import values_agree

_BITS = 64


def is_confirmed(program: str, share: float) -> bool:
    """Whether a candidate is one of those that run twice: decided by its text, so that every run decides the same.

    Args:
        program: source of the candidate.
        share: of all programs, in [0, 1].

    Raises:
        ValueError: no such share.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"a share lies between 0 and 1, not {share}")
    digest = hashlib.blake2b(program.encode("utf-8", "surrogatepass"), digest_size=_BITS // 8, person=b"confirm")
    return int.from_bytes(digest.digest()) < share * (1 << _BITS)


def agreed(first: Outcome, second: Outcome, comparison: Comparison) -> Outcome:
    """Return what two runs of one call say together; a value only if both gave it.

    Our own failure in either is our failure. Whatever else is not a value in both is a fault of the program, the first
    run's if it has one. NOT_RUN says nothing, so the other run decides.

    Args:
        first: of the run in order.
        second: of the run in reverse order, in another process.
        comparison: when two values count as the same.
    """
    for kind in (OutcomeKind.INTERNAL_ERROR, OutcomeKind.NOT_RUN):
        if kind in (first.kind, second.kind):
            is_ours = kind is OutcomeKind.INTERNAL_ERROR
            return first if (first.kind is kind) is is_ours else second
    if first.value is None or second.value is None:
        return first if first.value is None else second
    if values_agree(first.value, second.value, comparison):
        return first
    return Outcome(OutcomeKind.ERROR, error_type="Flaky", message="returned something else in another run")
