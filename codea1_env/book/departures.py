"""The record of an entry that has left a Mistake Book. Ages, survival and relapses are computed from these records."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from codea1_env.rules.mistake_book import Provenance


class Leaving(StrEnum):
    """Why an entry left."""

    FIXED = "fixed"
    """A program passed it: its frequency fell to 0, or the rules remove an entry that is passed once."""
    EVICTED = "evicted"
    """The book was full; no program need have passed it."""
    DENIED = "denied"
    """The present solution has another value, or none; so it said nothing about programs any more."""


@dataclass(frozen=True, slots=True)
class Departure:
    """One entry that has left the book, and its time in the book."""

    problem_id: str
    digest: bytes
    """Of its key (`BookKey.digest`): if the same case returns, it has the same digest."""
    expression: str
    how: Leaving
    added_round: int
    """Number of the problem's round that added it."""
    left_round: int
    """Number of the problem's round that removed it; not below `added_round`."""
    n_failed: int
    """Number of evaluations that a program failed, without those of the last round."""
    n_evaluated: int
    provenance: Provenance
    """Of the entry, without the value that the first failing program returned."""
