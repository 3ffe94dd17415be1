"""The pieces that are dropped while a reply is read: the first ones in full, the rest as counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from codea1_env.facts.submissions import Rejection, RejectionReason

MAX_LISTED = 1_024
"""Most pieces of one reply that are listed one by one."""

_MAX_SOURCE = 200


@dataclass(slots=True)
class Rejections:
    """Dropped pieces in their order."""

    listed: list[Rejection] = field(default_factory=list)
    more: Counter[RejectionReason] = field(default_factory=Counter)
    """Counts of the pieces that are not listed."""

    def add(self, reason: RejectionReason, source: str, line: int, detail: str, n: int = 1) -> None:
        """Add `n` equal dropped pieces."""
        n_listed = min(n, MAX_LISTED - len(self.listed))
        self.listed += [Rejection(reason, source.strip()[:_MAX_SOURCE], line, detail)] * n_listed
        if n > n_listed:
            self.more[reason] += n - n_listed
