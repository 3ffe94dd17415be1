"""What a Mistake Book has been through: the stays of its cases, and which mistakes came back. Pure but for reading.

A *spell* is one stay of one case: from the round that added it to the round that removed it, or to now. A case that is
fixed and fails again later begins another spell: a *relapse*. Only what a tester writes again can come back, so the
share of relapses is a lower bound of the mistakes that did.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from codea1_env.book.departures import Departure, Leaving
from codea1_env.book.store import MistakeBook, StoredEntry
from codea1_env.rules.mistake_book import Provenance


@dataclass(frozen=True, slots=True)
class Spell:
    """One stay of one case."""

    problem_id: str
    digest: bytes
    expression: str
    added_round: int
    last_round: int
    """The round that removed it; of one that is still there the problem's last."""
    how: Leaving | None
    """None: still there."""
    n_failed: int
    n_evaluated: int
    provenance: Provenance

    @property
    def duration(self) -> int:
        """Rounds of its problem, at least 0."""
        return max(0, self.last_round - self.added_round)

    @property
    def is_fixed(self) -> bool:
        """Whether it ended because a program passed the case; otherwise the end is not known (censored)."""
        return self.how is Leaving.FIXED


@dataclass(frozen=True, slots=True)
class Relapse:
    """A case that was fixed and came back, once or more."""

    problem_id: str
    expression: str
    spells: tuple[Spell, ...]
    """In order; at least two, all but the last fixed or evicted."""
    n_relapses: int
    """Spells that follow a fixed one."""

    @property
    def gaps(self) -> tuple[int, ...]:
        """Rounds between being fixed and coming back, by relapse."""
        pairs = zip(self.spells, self.spells[1:], strict=False)
        return tuple(max(0, after.added_round - before.last_round) for before, after in pairs if before.is_fixed)


@dataclass(frozen=True, slots=True)
class Origin:
    """One source of cases, and what became of these."""

    name: str
    n_spells: int
    n_fixed: int
    n_there: int
    n_problems: int


@dataclass(frozen=True, slots=True)
class Difficulty:
    """How hard a problem has been, as far as its cases tell: the book knows nothing of cases that no program failed."""

    problem_id: str
    n_rounds: int
    n_spells: int
    n_there: int
    n_fixed: int
    n_relapses: int
    fail_rate: float
    """Share of the evaluations of its cases that failed, in (0, 1]."""


def spells_of(book: MistakeBook) -> tuple[Spell, ...]:
    """Return every stay that the book knows of, those that are over first, in the order of leaving."""
    rounds = {problem_id: book.round_of(problem_id) for problem_id in book.problem_ids()}
    over = [_ended(departure) for departure in book.departures()]
    return (*over, *(_going_on(stored, rounds[stored.problem_id]) for stored in book.entries()))


def relapses(spells: Iterable[Spell]) -> tuple[Relapse, ...]:
    """Return the cases that came back, those that did most often first."""
    found = []
    for (problem_id, _), of_case in _by_case(spells).items():
        n = sum(before.is_fixed for before in of_case[:-1])
        if n:
            found.append(Relapse(problem_id, of_case[0].expression, tuple(of_case), n))
    return tuple(sorted(found, key=lambda each: (-each.n_relapses, each.problem_id, each.expression)))


def origins(spells: Iterable[Spell], name: Callable[[Spell], str]) -> tuple[Origin, ...]:
    """Return where cases come from, those with the most spells first.

    Args:
        spells: to be grouped.
        name: of a spell's source, e.g. its tester, or the first program that failed.
    """
    grouped: dict[str, list[Spell]] = defaultdict(list)
    for spell in spells:
        grouped[name(spell)].append(spell)
    found = (
        Origin(
            source,
            len(some),
            sum(spell.is_fixed for spell in some),
            sum(spell.how is None for spell in some),
            len({spell.problem_id for spell in some}),
        )
        for source, some in grouped.items()
    )
    return tuple(sorted(found, key=lambda origin: (-origin.n_spells, origin.name)))


def difficulties(spells: Sequence[Spell], rounds: dict[str, int]) -> tuple[Difficulty, ...]:
    """Return each problem's difficulty, the one with the highest share of failures first.

    Args:
        spells: of the whole book.
        rounds: number of rounds by problem.
    """
    returned = Counter(dict.fromkeys(rounds, 0))
    for relapse in relapses(spells):
        returned[relapse.problem_id] += relapse.n_relapses
    grouped: dict[str, list[Spell]] = defaultdict(list)
    for spell in spells:
        grouped[spell.problem_id].append(spell)
    found = (
        Difficulty(
            problem_id,
            rounds.get(problem_id, 0),
            len(some),
            sum(spell.how is None for spell in some),
            sum(spell.is_fixed for spell in some),
            returned[problem_id],
            sum(spell.n_failed for spell in some) / sum(spell.n_evaluated for spell in some),
        )
        for problem_id, some in grouped.items()
    )
    return tuple(sorted(found, key=lambda each: (-each.fail_rate, -each.n_spells, each.problem_id)))


def _by_case(spells: Iterable[Spell]) -> dict[tuple[str, bytes], list[Spell]]:
    grouped: dict[tuple[str, bytes], list[Spell]] = defaultdict(list)
    for spell in spells:
        grouped[spell.problem_id, spell.digest].append(spell)
    for of_case in grouped.values():
        of_case.sort(key=lambda spell: (spell.added_round, spell.how is None, spell.last_round))
    return grouped


def _ended(departure: Departure) -> Spell:
    return Spell(
        departure.problem_id,
        departure.digest,
        departure.expression,
        departure.added_round,
        departure.left_round,
        departure.how,
        departure.n_failed,
        departure.n_evaluated,
        departure.provenance,
    )


def _going_on(stored: StoredEntry, now: int) -> Spell:
    entry = stored.entry
    key = entry.key
    return Spell(
        stored.problem_id,
        key.digest(),
        key.expression,
        entry.added_round,
        max(now, entry.added_round),
        None,
        entry.n_failed,
        entry.n_evaluated,
        entry.provenance,
    )
