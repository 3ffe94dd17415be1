"""One budget for all values of a candidate that are compared here: what is beyond it has failed, and is not looked at.

Each value has bounds of its own (`values.MAX_NODES`), but a candidate may answer hundreds of questions. What could be
equal by its length costs nothing: twice as long as expected, and room for one number in full per item, since floats
within tolerance are written with up to 24 characters (`0.30000000000000004` for `0.3`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from codea1_env.facts.outcomes import Outcome, OutcomeKind

_BYTES = 1 << 20  # comparing so many takes half a second to a second and a half
_LENGTHS = 2
_ITEM = 24  # bytes: the longest text of a float
_SHORT = 256  # bytes
_SPENT = Outcome(
    OutcomeKind.OUTPUT_LIMIT,
    message=f"all answers together are {_BYTES:,} bytes longer than {_LENGTHS} times the right ones",
)


class ValueBudget:
    """What is left to one candidate, over all its runs."""

    def __init__(self) -> None:
        self._n_left = _BYTES

    def take(self, outcome: Outcome, expected: Outcome) -> Outcome:
        """Return what a program has answered, or an OUTPUT_LIMIT where the budget does not suffice to compare it."""
        n_bytes = _length(outcome)
        if n_bytes > _SHORT and outcome.value != expected.value:
            self._n_left -= max(0, n_bytes - _LENGTHS * _length(expected) - _ITEM * _n_items(expected))
            return outcome if self._n_left >= 0 else _SPENT
        return outcome

    def take_values(self, outcomes: Sequence[Outcome], expected: Iterable[bytes]) -> Sequence[Outcome]:
        """Return what a program has answered to several calls, likewise.

        Args:
            outcomes: one per call.
            expected: the encoded right values.
        """
        if max(map(_length, outcomes), default=0) <= _SHORT:  # most are
            return outcomes
        right = (Outcome(OutcomeKind.VALUE, value) for value in expected)
        return [*map(self.take, outcomes, right)]


def _n_items(outcome: Outcome) -> int:
    """Return about how many leaves the values of an outcome have."""
    return sum(part.count(b",") + 1 for part in (outcome.value, outcome.items, outcome.arguments) if part)


def _length(outcome: Outcome) -> int:
    return len(outcome.value or b"") + len(outcome.items or b"") + len(outcome.arguments or b"")
