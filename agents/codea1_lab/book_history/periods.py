"""The history of a Mistake Book: in which periods each case was in the book, and which mistakes came back.

A *period* is the time of one case in the book: from the round that added it to the round that removed it, or to now. If
a case is fixed and a program fails it again later, a new period begins: a *relapse*. A case comes back only if a tester
writes it again, so the share of relapses is a lower bound of the mistakes that came back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from codea1_env.book.store import MistakeBook, Period, StoredEntry


@dataclass(frozen=True, slots=True)
class Relapse:
    """A case that was fixed and came back, at least once."""

    problem_id: str
    expression: str
    periods: tuple[Period, ...]
    """In order; at least two; all but the last ended."""

    @property
    def n_relapses(self) -> int:
        """Number of periods that follow a fixed one."""
        return len(self.gaps)

    @property
    def gaps(self) -> tuple[int, ...]:
        """For each relapse, the rounds between the fix and the return."""
        pairs = zip(self.periods, self.periods[1:], strict=False)
        return tuple(max(0, after.added_round - before.last_round) for before, after in pairs if before.is_fixed)


def periods_of(book: MistakeBook) -> tuple[Period, ...]:
    """Return all periods of a book: first those that ended, in the order of their ends, then the others."""
    rounds = {problem_id: book.round_of(problem_id) for problem_id in book.problem_ids()}
    return (*book.departures(), *(_open(stored, rounds[stored.problem_id]) for stored in book.entries()))


def relapses(periods: Iterable[Period]) -> tuple[Relapse, ...]:
    """Return the cases that came back, those with the most relapses first."""
    cases: dict[tuple[str, bytes], list[Period]] = defaultdict(list)
    for period in periods:
        cases[period.problem_id, period.digest].append(period)
    relapsed = []
    for (problem_id, _), of_case in cases.items():
        of_case.sort(key=lambda period: (period.added_round, period.how is None, period.last_round))
        if any(before.is_fixed for before in of_case[:-1]):
            relapsed.append(Relapse(problem_id, of_case[0].expression, tuple(of_case)))
    return tuple(sorted(relapsed, key=lambda case: (-case.n_relapses, case.problem_id, case.expression)))


def _open(stored: StoredEntry, now: int) -> Period:
    entry = stored.entry
    key = entry.key
    return Period(
        stored.problem_id,
        key.digest(),
        key.expression,
        None,
        entry.added_round,
        max(now, entry.added_round),
        entry.n_failed,
        entry.n_evaluated,
        entry.provenance,
    )
