"""The history of a Mistake Book: in which periods each case was in the book, and which mistakes came back.

A *period* is the time of one case in the book: from the round that added it to the round that removed it, or to now. If
a case is fixed and a program fails it again later, a new period begins: a *relapse*. A case comes back only if a tester
writes it again, so the share of relapses is a lower bound of the mistakes that came back.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from codea1_env.book.rows import Period
from codea1_env.book.store import MistakeBook, StoredEntry

_Key = TypeVar("_Key")


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


@dataclass(frozen=True, slots=True)
class Origin:
    """One source of cases, with counts of their periods."""

    name: str
    n_periods: int
    n_fixed: int
    n_there: int
    """Periods of cases that are still in the book."""
    n_problems: int


@dataclass(frozen=True, slots=True)
class Difficulty:
    """How hard a problem has been, measured by its cases in the book: cases that no program failed are not counted."""

    problem_id: str
    n_rounds: int
    n_periods: int
    n_there: int
    n_fixed: int
    n_relapses: int
    fail_rate: float
    """Share of the evaluations of its cases that failed, in (0, 1]."""


def periods_of(book: MistakeBook) -> tuple[Period, ...]:
    """Return all periods of a book: first those that ended, in the order of their ends, then the others."""
    rounds = {problem_id: book.round_of(problem_id) for problem_id in book.problem_ids()}
    return (*book.departures(), *(_open(stored, rounds[stored.problem_id]) for stored in book.entries()))


def relapses(periods: Iterable[Period]) -> tuple[Relapse, ...]:
    """Return the cases that came back, those with the most relapses first."""
    found = []
    for (problem_id, _), of_case in _grouped(periods, lambda period: (period.problem_id, period.digest)).items():
        of_case.sort(key=lambda period: (period.added_round, period.how is None, period.last_round))
        if any(before.is_fixed for before in of_case[:-1]):
            found.append(Relapse(problem_id, of_case[0].expression, tuple(of_case)))
    return tuple(sorted(found, key=lambda each: (-each.n_relapses, each.problem_id, each.expression)))


def origins(periods: Iterable[Period], name: Callable[[Period], str]) -> tuple[Origin, ...]:
    """Return the sources of cases, those with the most periods first.

    Args:
        periods: are grouped by source.
        name: returns the name of a period's source, e.g. its tester, or the first program that failed.
    """
    found = (
        Origin(
            source,
            len(some),
            sum(period.is_fixed for period in some),
            sum(period.how is None for period in some),
            len({period.problem_id for period in some}),
        )
        for source, some in _grouped(periods, name).items()
    )
    return tuple(sorted(found, key=lambda origin: (-origin.n_periods, origin.name)))


def difficulties(periods: Sequence[Period], rounds: dict[str, int]) -> tuple[Difficulty, ...]:
    """Return each problem's difficulty, the problem with the highest share of failures first.

    Args:
        periods: all periods of the book.
        rounds: problem id -> number of its rounds.
    """
    returned = Counter(dict.fromkeys(rounds, 0))
    for relapse in relapses(periods):
        returned[relapse.problem_id] += relapse.n_relapses
    found = (
        Difficulty(
            problem_id,
            rounds.get(problem_id, 0),
            len(some),
            sum(period.how is None for period in some),
            sum(period.is_fixed for period in some),
            returned[problem_id],
            sum(period.n_failed for period in some) / sum(period.n_evaluated for period in some),
        )
        for problem_id, some in _grouped(periods, lambda period: period.problem_id).items()
    )
    return tuple(sorted(found, key=lambda each: (-each.fail_rate, -each.n_periods, each.problem_id)))


def _grouped(periods: Iterable[Period], key: Callable[[Period], _Key]) -> dict[_Key, list[Period]]:
    groups: dict[_Key, list[Period]] = defaultdict(list)
    for period in periods:
        groups[key(period)].append(period)
    return groups


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
