"""Computes how long to wait before a request is sent again. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from codea1_env.errors import UserError

LONGEST_S = 60.0
"""Longest wait."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential waiting with jitter."""

    retries: int = 5
    first_s: float = 0.5

    def __post_init__(self) -> None:
        if not (type(self.retries) is int and self.retries >= 0):
            raise UserError(f"retries must be at least 0, not {self.retries!r}")
        if not 0 <= self.first_s <= LONGEST_S:
            raise UserError(f"backoff_s must be within [0, {LONGEST_S:g}], not {self.first_s!r}")

    def wait_s(self, attempt: int, draws: Random, requested_s: float | None = None) -> float:
        """Return the seconds to wait after attempt `attempt` (from 0) failed.

        Random between half and the whole of `first_s * 2 ** attempt`, so that clients that failed together do not retry
        together; at least `requested_s`, which the server requested, and at most `LONGEST_S`.
        """
        full = min(LONGEST_S, self.first_s * 2.0 ** min(attempt, 60))
        jittered = full * (0.5 + 0.5 * draws.random())
        return min(LONGEST_S, max(jittered, requested_s or 0.0))
