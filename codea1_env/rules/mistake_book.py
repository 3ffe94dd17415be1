"""The Mistake Book's rules: what a round changes, and which cases are replayed. Pure; `book.store` stores the book.

How it works. `changes` turns one judged round into one `BookChange` per case. `entry_after` applies one change to one
entry, and is the only implementation of the update rules: `apply_changes` maps it over a whole book in memory, and the
store maps it over the few rows that a round changes. Replays come before new failures, so an entry may be removed and
added again, as a new entry, within one round, as in the release.

An entry holds plain data only. The expected value is an encoding and never program text, so a case cannot turn into
another case when it is stored and loaded. In the release it can: it stores program text without unescaping it
(reward.py:694, 716), so a case with a newline or a quote comes back as another one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import chain

from codea1_env.facts.submissions import TestCase
from codea1_env.facts.verdicts import CandidateReport, CaseReport, ProblemReport, ValidCase, Verdict
from codea1_env.rules.ruleset import BookRules, BookUpdate

MAX_COUNT = 1 << 48
"""Largest number in an entry: sums of two are exact in every format. Counts beyond it stay at it."""


@dataclass(frozen=True, slots=True)
class BookKey:
    """The identity of a case within one problem: two cases with equal keys are the same case."""

    expression: str
    imports: tuple[str, ...]
    expected: bytes
    """Canonical encoding (`codea1_env.values`), so that a set has the same bytes under every hash seed."""

    @classmethod
    def of(cls, case: ValidCase) -> BookKey:
        """Return the key of a confirmed case; the tester's prediction is not part of it."""
        return cls(case.case.expression, case.case.imports, case.expected)

    def digest(self) -> bytes:
        """Return a 16-byte hash of the key, the same on every machine."""
        text = json.dumps([self.expression, *self.imports]).encode()  # without NUL, which separates it from the value
        return hashlib.blake2b(text + b"\0" + self.expected, digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Provenance:
    """The origin of an entry. It holds neither time nor host, so equal runs give equal books."""

    run: str = ""
    episode_id: str = ""
    round: int = 0
    """Round within the episode."""
    coder: str = ""
    tester: str = ""
    program_sha256: str = ""
    """Hexadecimal digest of the first program that failed. It comes from the report, as do the next two fields."""
    verdict: str = ""
    """The verdict on that program."""
    actual: str = ""
    """The result of that program, for people (`CaseReport.actual`)."""


@dataclass(frozen=True, slots=True)
class BookEntry:
    """One case of one problem that a program has failed."""

    key: BookKey
    direct: bool
    """As in `TestCase`: whether the expression may run inside the program's process."""
    frequency: int
    """At least 1. RELEASE increments and decrements it, and replays are ranked by it."""
    n_failed: int
    """Evaluations that a program failed; at least 1."""
    n_evaluated: int
    """Evaluations in the rounds that changed the entry, passed or failed; at least `n_failed`."""
    added_round: int
    """Number of the problem's round that added it; the first round of a problem is 1."""
    last_replayed_round: int
    """Number of the problem's round that last replayed it; 0: never."""
    sequence: int
    """Order of age within its problem, from 1; a smaller number is older."""
    provenance: Provenance = field(default_factory=Provenance)

    def __post_init__(self) -> None:
        if self.frequency < 1 or not 1 <= self.n_failed <= self.n_evaluated:
            raise ValueError(f"an entry with frequency {self.frequency}, {self.n_failed}/{self.n_evaluated} failed")
        if self.n_evaluated > MAX_COUNT or self.frequency > MAX_COUNT:
            raise ValueError(f"an entry with counts above {MAX_COUNT}: {self}")
        if self.added_round < 0 or self.last_replayed_round < 0 or self.sequence < 1:
            raise ValueError(f"an entry with a negative round or sequence: {self}")

    @property
    def expression(self) -> str:
        """Python source that calls the entry point."""
        return self.key.expression

    def to_valid_case(self) -> ValidCase:
        """Return the case to replay, with the solution's value and without the tester's prediction."""
        key = self.key
        return ValidCase(TestCase(key.expression, None, key.imports, self.direct), key.expected, None)


@dataclass(frozen=True, slots=True)
class Failure:
    """How the first program failed a case in one round."""

    program_sha256: str
    verdict: str
    actual: str


@dataclass(frozen=True, slots=True)
class BookChange:
    """How often the counted candidates of one round passed and failed one case.

    A case that was both replayed and newly written has two changes, the replay first.
    """

    key: BookKey
    direct: bool
    is_replay: bool
    n_passed: int
    n_failed: int
    failure: Failure | None = None
    """Set iff `n_failed` is positive and this is not a replay."""
    is_denied: bool = False
    """Whether the present solution denies a replayed case."""


@dataclass(frozen=True, slots=True)
class BookDelta:
    """How one recorded round changed one problem's entries.

    The size before + added - removed - evicted - denied = `size`.
    """

    size: int
    """The problem's entries afterwards."""
    added: int = 0
    """New entries, and entries that were removed and added again in the same round."""
    removed: int = 0
    """Entries that were removed because candidates passed them."""
    evicted: int = 0
    """Entries that were removed because the book holds at most `max_entries`."""
    incremented: int = 0
    """Entries that stayed and whose frequency rose."""
    decremented: int = 0
    """Entries that stayed and whose frequency fell."""
    denied: int = 0
    """Entries that were removed because the present solution has another value, or none."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """The round, the age order and the origin that a new entry gets."""

    round: int
    sequence: int
    provenance: Provenance


def changes(report: ProblemReport, rules: BookRules) -> tuple[BookChange, ...]:
    """Return the changes of one round, in the order in which they must be applied; () if `rules.update` is OFF.

    Only valid candidates without an internal error count. Every replayed case has a change, even without evidence,
    since it was tried and is no longer the stalest; one that the solution denies is removed in any case. Newly
    failing cases follow in the order of their first failures; failures in several suites and of several candidates add
    up.

    Source: release reward.py:1071-1096, trainer_a1.py:119-156 (decrements before increments, multiplicity counts).
    """
    if rules.update is BookUpdate.OFF:
        return ()
    counted = [candidate for candidate in report.candidates if candidate.loads and not candidate.has_internal_error]
    replays = {BookKey.of(case.case): _Tally(case) for each in report.candidates for case in each.replayed}
    new: dict[BookKey, _Tally] = {}
    failed: dict[BookKey, _Tally] = {}  # in the order of the first failures, which becomes the order of age
    for candidate in counted:
        for case in candidate.replayed:
            replays[BookKey.of(case.case)].count(candidate, case)
        for case in chain.from_iterable(suite.cases for suite in candidate.suites):
            key = BookKey.of(case.case)
            tally = new.setdefault(key, _Tally(case))
            tally.count(candidate, case)
            if tally.n_failed:
                failed.setdefault(key, tally)
    return (
        *(tally.change(key, is_replay=True) for key, tally in replays.items()),
        *(tally.change(key, is_replay=False) for key, tally in failed.items()),
    )


class _Tally:
    """Counts of one case while a report is read."""

    def __init__(self, report: CaseReport) -> None:
        self._direct = report.case.case.direct
        self._is_denied = report.verdict is Verdict.DENIED
        self._n_passed = 0
        self.n_failed = 0
        self._failure: Failure | None = None

    def count(self, candidate: CandidateReport, case: CaseReport) -> None:
        self._n_passed += case.verdict is Verdict.PASSED
        if case.verdict.is_failure:
            self.n_failed += 1
            if self._failure is None:
                program = candidate.candidate.program.encode("utf-8", "surrogatepass")
                self._failure = Failure(hashlib.sha256(program).hexdigest(), case.verdict.value, case.actual)

    def change(self, key: BookKey, *, is_replay: bool) -> BookChange:
        failure = None if is_replay else self._failure
        return BookChange(key, self._direct, is_replay, self._n_passed, self.n_failed, failure, self._is_denied)


def entry_after(entry: BookEntry | None, change: BookChange, rules: BookRules, arrival: Arrival) -> BookEntry | None:
    """Return the entry after a change of the case with its key; None: the book does not hold it afterwards.

    Replay of an existing entry:
        If the present solution denies it, it is removed.
        Under RELEASE the frequency falls by 1 per pass, not below 0; under REMOVE_ON_PASS it falls to 0 with the first
        pass. With `count_replay_failures` it then rises by 1 per failure, except after a removal by REMOVE_ON_PASS. At
        0 the entry is removed. A replay of an entry that is no longer there changes nothing.
    New failures: the frequency rises by 1 each. An unknown case becomes an entry with that frequency.

    Source: release trainer_a1.py:119-156; arXiv 2603.15611, 3.3 (REMOVE_ON_PASS) and A.3 (`count_replay_failures`).
    The paper removes an entry that is passed in 3.3, and counts frequencies in A.3 and appendix D. The release does not
    count a replayed case that fails again.
    """
    if entry is None:
        return None if change.is_replay or change.failure is None else _make_entry(change, change.failure, arrival)
    frequency, last_replayed_round = entry.frequency, entry.last_replayed_round
    if not change.is_replay:
        frequency += change.n_failed
    elif change.is_denied or (rules.update is BookUpdate.REMOVE_ON_PASS and change.n_passed):
        return None
    else:
        last_replayed_round = arrival.round
        if rules.update is BookUpdate.RELEASE:
            frequency = max(0, frequency - change.n_passed)
        if rules.count_replay_failures:
            frequency += change.n_failed
        if frequency == 0:
            return None
    return replace(
        entry,
        frequency=min(frequency, MAX_COUNT),
        n_failed=min(entry.n_failed + change.n_failed, MAX_COUNT),
        n_evaluated=min(entry.n_evaluated + change.n_failed + change.n_passed, MAX_COUNT),
        last_replayed_round=last_replayed_round,
    )


def _make_entry(change: BookChange, failure: Failure, arrival: Arrival) -> BookEntry:
    origin = replace(
        arrival.provenance, program_sha256=failure.program_sha256, verdict=failure.verdict, actual=failure.actual
    )
    return BookEntry(
        key=change.key,
        direct=change.direct,
        frequency=change.n_failed,
        n_failed=change.n_failed,
        n_evaluated=change.n_failed + change.n_passed,
        added_round=arrival.round,
        last_replayed_round=0,
        sequence=arrival.sequence,
        provenance=origin,
    )


def apply_changes(
    entries: Iterable[BookEntry],
    book_changes: Iterable[BookChange],
    rules: BookRules,
    *,
    round: int,  # noqa: A002  -- the game's word; the builtin is not needed here
    provenance: Provenance | None = None,
) -> tuple[BookEntry, ...]:
    """Return one problem's entries after a round, oldest first. `book.store` must give the same result.

    Changes are applied in order. A new entry gets the largest `sequence` plus 1. Finally, while there are more than
    `rules.max_entries` entries, the least frequent one is removed, the oldest first among equals.
    """
    book = {entry.key: entry for entry in sorted(entries, key=lambda entry: entry.sequence)}
    origin = provenance or Provenance()
    for change in book_changes:
        youngest = next(reversed(book.values()), None)
        arrival = Arrival(round, youngest.sequence + 1 if youngest else 1, origin)
        after = entry_after(book.get(change.key), change, rules, arrival)
        if after is not None:
            book[change.key] = after
        else:
            book.pop(change.key, None)
    if rules.max_entries is None:
        return tuple(book.values())
    strongest = sorted(book.values(), key=lambda entry: (entry.frequency, entry.sequence), reverse=True)
    return tuple(sorted(strongest[: max(0, rules.max_entries)], key=lambda entry: entry.sequence))


def select_replayed(entries: Iterable[BookEntry], rules: BookRules) -> tuple[BookEntry, ...]:
    """Return at most `rules.n_replayed` entries of one problem, in the order of replay.

    `n_stalest` of the slots go to the entries that were tried longest ago, older first on ties, among those that the
    other slots do not take. New entries come after the existing ones, so every entry is replayed again and again,
    however many are added. In the release all but the first `n_replayed` can become unreachable.
    The other slots hold the most frequent entries, older first on ties (release reward.py:1041-1052, which sorts its
    list in place, so there a tie may also go to the entry that was first before).
    """
    by_age = sorted(entries, key=lambda entry: entry.sequence)
    n_slots = max(0, rules.n_replayed)
    n_first = n_slots - min(max(0, rules.n_stalest), n_slots)
    first = sorted(by_age, key=lambda entry: -entry.frequency)[:n_first]
    taken = {entry.sequence for entry in first}
    left = [entry for entry in by_age if entry.sequence not in taken]
    stalest = sorted(left, key=lambda entry: max(entry.added_round, entry.last_replayed_round))
    return (*first, *stalest[: n_slots - n_first])
