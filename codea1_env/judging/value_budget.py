"""One budget for all values of a candidate that are compared here: a value beyond the budget has failed, uncompared.

Each value has its own bounds (`values.MAX_NODES`), but a candidate may answer hundreds of calls. A value whose length
is plausible costs nothing: up to twice the expected length, plus 24 bytes per item, since a float within the tolerance
may be written with up to 24 characters (`0.30000000000000004` for `0.3`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from codea1_env.facts.outcomes import Outcome, OutcomeKind

_BYTES = 1 << 20  # comparing that many takes 0.5 to 1.5 seconds
_LENGTHS = 2
_ITEM = 24  # bytes: the longest text of a float
_SHORT = 256  # bytes
_SPENT = Outcome(
    OutcomeKind.OUTPUT_LIMIT,
    message=f"all answers together are {_BYTES:,} bytes longer than {_LENGTHS} times the right ones",
)


class ValueBudget:
    """The remaining budget of one candidate, over all its runs."""

    def __init__(self) -> None:
        self._n_left = _BYTES

    def take(self, outcome: Outcome, expected: Outcome) -> Outcome:
        """Return a program's outcome, or an OUTPUT_LIMIT if the budget does not suffice to compare it."""
        n_bytes = _length(outcome)
        if n_bytes > _SHORT and outcome.value != expected.value:
            self._n_left -= max(0, n_bytes - _LENGTHS * _length(expected) - _ITEM * _n_items(expected))
            return outcome if self._n_left >= 0 else _SPENT
        return outcome

    def take_values(self, outcomes: Sequence[Outcome], expected: Iterable[bytes]) -> Sequence[Outcome]:
        """Return a program's outcomes of several calls, each as `take` returns it.

        Args:
            outcomes: one per call.
            expected: the encoded right values.
        """
        if max(map(_length, outcomes), default=0) <= _SHORT:  # most outcomes
            return outcomes
        right = (Outcome(OutcomeKind.VALUE, value) for value in expected)
        return [*map(self.take, outcomes, right)]


def _n_items(outcome: Outcome) -> int:
    """Return the approximate number of leaves in the values of an outcome."""
    return sum(part.count(b",") + 1 for part in (outcome.value, outcome.items, outcome.arguments) if part)


def _length(outcome: Outcome) -> int:
    return len(outcome.value or b"") + len(outcome.items or b"") + len(outcome.arguments or b"")
