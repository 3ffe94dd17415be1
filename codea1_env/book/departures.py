"""The record of an entry that has left a Mistake Book: what makes age, survival and relapses known afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from codea1_env.rules.mistake_book import Provenance


class Leaving(StrEnum):
    """Why an entry left."""

    FIXED = "fixed"
    """A program passed it: its frequency fell to 0, or the rules remove what is passed once."""
    EVICTED = "evicted"
    """The book was full; it says nothing about programs."""


@dataclass(frozen=True, slots=True)
class Departure:
    """One entry's stay in the book, when it was over."""

    problem_id: str
    digest: bytes
    """Of its key (`BookKey.digest`): the same case has the same digest when it comes back."""
    expression: str
    how: Leaving
    added_round: int
    """Number of the problem's round that added it."""
    left_round: int
    """Number of the problem's round that removed it; not below `added_round`."""
    n_failed: int
    """Evaluations that a program failed, without those of the last round."""
    n_evaluated: int
    provenance: Provenance
    """Of the entry; what the first failing program gave is not kept."""
