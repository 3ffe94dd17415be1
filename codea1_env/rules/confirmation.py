"""Confirmation runs: some candidates run twice, the second time in reverse order and in another process.

A right answer must depend neither on chance nor on the order of the calls.
"""

from __future__ import annotations

import hashlib

from codea1_env.facts.outcomes import Outcome, OutcomeKind
from codea1_env.rules.ruleset import Comparison
from codea1_env.rules.validation import values_agree

_BITS = 64


def is_confirmed(program: str, share: float) -> bool:
    """Whether a candidate runs twice. A hash of its text decides, so every process decides the same.

    Args:
        program: source of the candidate.
        share: share of all programs that run twice, in [0, 1].

    Raises:
        ValueError: the share is outside [0, 1].
    """
    if not 0 <= share <= 1:
        raise ValueError(f"a share lies between 0 and 1, not {share}")
    digest = hashlib.blake2b(program.encode("utf-8", "surrogatepass"), digest_size=_BITS // 8, person=b"confirm")
    return int.from_bytes(digest.digest()) < share * (1 << _BITS)


def combined_outcome(first: Outcome, second: Outcome, comparison: Comparison) -> Outcome:
    """Combine the outcomes of two runs of one call: a value only if both runs returned it.

    INTERNAL_ERROR in either run gives INTERNAL_ERROR. NOT_RUN is no evidence, so the other run decides. Otherwise a
    failure in either run counts, the first run's if both failed. Different values give an ERROR of type `Flaky`.

    Args:
        first: outcome of the run in order.
        second: outcome of the run in reverse order, in another process.
        comparison: when two values count as equal.
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
