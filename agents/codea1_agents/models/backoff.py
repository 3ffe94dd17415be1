"""Computes how long to wait before a request is sent again. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Annotated

from codea1_env.declared import CountOrZero, Range, require_declared

LONGEST_S = 60.0
"""Longest wait."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential waiting with jitter."""

    retries: CountOrZero = 5
    backoff_s: Annotated[float, Range(0, LONGEST_S)] = 0.5
    """The first wait."""

    def __post_init__(self) -> None:
        require_declared(self, "")

    def wait_s(self, attempt: int, draws: Random, requested_s: float | None = None) -> float:
        """Return the seconds to wait after attempt `attempt` (from 0) failed.

        Random between half and the whole of `backoff_s * 2 ** attempt`, so that clients that failed together do not
        retry together; at least `requested_s`, which the server requested, and at most `LONGEST_S`.
        """
        full = min(LONGEST_S, self.backoff_s * 2.0 ** min(attempt, 60))
        jittered = full * (0.5 + 0.5 * draws.random())
        return min(LONGEST_S, max(jittered, requested_s or 0.0))
