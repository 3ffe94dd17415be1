"""In which order a candidate answers its calls, and which candidates run twice, in two orders and processes.

A right answer must depend neither on chance nor on the order of the calls, and the order of a suite, which often climbs
from one case to the next, must not help a program that remembers what it was asked before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

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
        raise ValueError(f"share must be in [0, 1], got {share}")
    digest = hashlib.blake2b(program.encode("utf-8", "surrogatepass"), digest_size=_BITS // 8, person=b"confirm")
    return int.from_bytes(digest.digest()) < share * (1 << _BITS)


def drawn_order(program: str, calls: Sequence[str], run: int) -> tuple[int, ...]:
    """Return the order of a run's calls, as positions. A hash decides, of which the program knows only a part.

    Args:
        program: source of the candidate.
        calls: all of its calls, as texts.
        run: 0, or 1 for a second run of calls in the order of the first, which is never theirs.
    """
    texts = "\0".join((str(run), program, *calls)).encode("utf-8", "surrogatepass")
    given = tuple(range(len(calls)))
    keys = hashlib.shake_128(texts).digest(8 * len(calls))
    drawn = tuple(sorted(given, key=lambda position: keys[8 * position : 8 * position + 8]))
    return drawn if run == 0 or drawn != given else drawn[::-1]


def combined_outcome(first: Outcome, second: Outcome, comparison: Comparison) -> Outcome:
    """Combine the outcomes of two runs of one call: a value only if both runs returned it.

    INTERNAL_ERROR in either run gives INTERNAL_ERROR. NOT_RUN is not evidence, so the other run decides. Otherwise a
    failure in either run counts, the first run's if both failed. Different values give an ERROR of type `Flaky`.

    Args:
        first: outcome of the first run.
        second: outcome of the second run, in another order and process.
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
