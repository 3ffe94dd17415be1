"""The Mistake Book on disk: one SQLite file, or memory. `rules.mistake_book` contains the rules that fill it.

A round finds its rows through indexes and reads and writes no others; sizes and round numbers are counters. So the cost
of a round does not grow with the book (`benchmarks/book.py`). The Code-A1 release writes the whole book after every
step.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any

from codea1_env import values
from codea1_env.book.database import BadRow, BookDatabase
from codea1_env.errors import BrokenInput, UserError
from codea1_env.facts.judge_version import JUDGE_VERSION, require_this_judge
from codea1_env.facts.verdicts import ProblemReport
from codea1_env.records.closing import Closing
from codea1_env.rules.mistake_book import (
    MAX_COUNT,
    Arrival,
    BookChange,
    BookDelta,
    BookEntry,
    BookKey,
    Provenance,
    changes,
    entry_after,
    select_replayed,
)
from codea1_env.rules.ruleset import BookRules, BookUpdate

_KEY_COLUMNS = ("problem", "digest", "sequence", "expression", "imports", "expected", "direct")
_COUNT_COLUMNS = ("frequency", "n_failed", "n_evaluated", "added_round", "last_replayed_round")
_PROVENANCE_COLUMNS = ("run", "episode_id", "round", "coder", "tester", "program_sha256", "verdict", "actual")
_COUNTS = attrgetter(*_COUNT_COLUMNS)
_PROVENANCE = attrgetter(*_PROVENANCE_COLUMNS)  # `astuple` copies deeply, and took a quarter of a round
_COLUMNS = (*_KEY_COLUMNS, *_COUNT_COLUMNS, *_PROVENANCE_COLUMNS)

_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM entry WHERE problem = ?"
_INSERT = f"INSERT INTO entry ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' for _ in _COLUMNS)})"
_UPDATE = (
    f"UPDATE entry SET {', '.join(f'{column} = ?' for column in (*_COUNT_COLUMNS, *_PROVENANCE_COLUMNS))} "
    "WHERE problem = ? AND sequence = ?"
)
_KEPT_ORIGIN = ("run", "episode_id", "round", "coder", "tester", "program_sha256", "verdict")
_DEPART = (
    "INSERT INTO departure SELECT problem, digest, substr(expression, 1, 1000), ?, added_round, ?, n_failed,"
    f" n_evaluated, {', '.join(_KEPT_ORIGIN)} FROM entry WHERE problem = ? AND sequence = ?"
)
_DEPARTURES = (
    "SELECT departure.rowid, problem.name, digest, expression, how, added_round, left_round, n_failed, n_evaluated,"
    f" {', '.join(f'departure.{name}' for name in _KEPT_ORIGIN)}"
    " FROM departure JOIN problem ON problem.id = problem WHERE departure.rowid > ? ORDER BY departure.rowid LIMIT ?"
)


class Leaving(StrEnum):
    """Why an entry left."""

    FIXED = "fixed"
    """A program passed it: its frequency fell to 0, or the rules remove an entry that is passed once."""
    EVICTED = "evicted"
    """The book was full; no program need have passed it."""
    DENIED = "denied"
    """The present solution has another value, or none; so it said nothing about programs any more."""


@dataclass(frozen=True, slots=True)
class Period:
    """The time of one case in the book: from the round that added it to the round that removed it, or to now."""

    problem_id: str
    digest: bytes
    """Digest of its key (`BookKey.digest`), so that a case that returns is recognised."""
    expression: str
    """Its first 1,000 characters, once it has left: a book grows with each case that leaves."""
    how: Leaving | None
    """Why it ended; None: the case is still in the book."""
    added_round: int
    """Number of the problem's round that added it."""
    last_round: int
    """Number of the problem's round that removed it, or of its last round; not below `added_round`."""
    n_failed: int
    """Number of evaluations that a program failed, without those of the last round."""
    n_evaluated: int
    provenance: Provenance
    """Size of the entry, without the value that the first failing program returned."""

    @property
    def duration(self) -> int:
        """In rounds of its problem, at least 0."""
        return max(0, self.last_round - self.added_round)

    @property
    def is_fixed(self) -> bool:
        """Whether it ended because a program passed the case; otherwise it is censored in the statistical sense."""
        return self.how is Leaving.FIXED


def departures_after(connection: sqlite3.Connection, number: int, *, limit: int) -> list[tuple[int, Period]]:
    """Return the next periods of all problems that ended, each with its number, in the order of their ends."""
    page = []
    for row in connection.execute(_DEPARTURES, (number, limit)):
        run, episode_id, played, coder, tester, program, verdict = row[9:]
        origin = Provenance(run, episode_id, played, coder, tester, program, verdict)
        last, (number, problem_id, digest, expression, how, added, left, n_failed, n_evaluated) = number, row[:9]
        counts = (added, left, n_failed, n_evaluated)
        is_sound = (
            are_counts(number, *counts, played)
            and number > last  # a damaged file can give the same page for ever
            and are_texts(problem_id, expression, run, episode_id, coder, tester, program, verdict)
            and how in list(Leaving)
            and isinstance(digest, bytes)
        )
        require_sound(is_sound, "departure", number)
        page.append((number, Period(problem_id, digest, expression, Leaving(how), *counts, origin)))
    return page


class ProblemRows:
    """One problem's rows inside one transaction."""

    def __init__(self, connection: sqlite3.Connection, row_id: int, round_number: int, size: int) -> None:
        self._connection = connection
        self._id = row_id
        self._saved_size = size
        self._youngest: int | None = None
        self.round = round_number
        """Number of the problem's last round; `save_counts` writes it."""
        self.size = size
        """Number of entries; every write updates it, and `save_counts` writes it."""

    @classmethod
    def find(cls, connection: sqlite3.Connection, problem_id: str) -> ProblemRows | None:
        """Return the problem's rows; None if the book does not know the problem."""
        try:
            problem_id.encode()
        except UnicodeEncodeError as error:
            raise UserError(f"problem id {problem_id!r}: not Unicode text") from error
        query = "SELECT id, round, size FROM problem WHERE name = ?"
        row = connection.execute(query, (problem_id,)).fetchone()
        if row is None:
            return None
        require_sound(are_counts(*row) and row[1] < MAX_COUNT, "problem", problem_id)
        return cls(connection, *row)

    @classmethod
    def find_or_add(cls, connection: sqlite3.Connection, problem_id: str) -> ProblemRows:
        """Return the problem's rows; add the problem if the book does not know it."""
        rows = cls.find(connection, problem_id)
        if rows is None:
            connection.execute("INSERT OR IGNORE INTO problem (name) VALUES (?)", (problem_id,))
            rows = cls.find(connection, problem_id)
        if rows is None:
            raise AssertionError(f"problem {problem_id!r} was added but is missing")
        return rows

    def get(self, digest: bytes) -> BookEntry | None:
        """Return the entry whose key has this digest; None if there is none."""
        return next(iter(self._select("AND digest = ?", digest)), None)

    def after(self, sequence: int, *, limit: int) -> list[BookEntry]:
        """Return the next entries that are younger than `sequence`, oldest first."""
        page = self._select("AND sequence > ? ORDER BY sequence LIMIT ?", sequence, limit)
        for last, number in pairwise([sequence, *(entry.sequence for entry in page)]):
            require_sound(number > last, "entry", number)  # likewise
        return page

    def pool(self, rules: BookRules) -> list[BookEntry]:
        """Return a set of entries that contains all that `select_replayed` can choose."""
        n_slots = max(0, rules.n_replayed)
        frequent = self._select("ORDER BY frequency DESC, sequence LIMIT ?", n_slots)
        stalest = "ORDER BY MAX(added_round, last_replayed_round), sequence LIMIT ?"
        stale = self._select(stalest, n_slots) if rules.n_stalest > 0 else []
        return list({entry.sequence: entry for entry in (*frequent, *stale)}.values())

    def next_sequence(self) -> int:
        """Return the sequence number of the next new entry."""
        if self._youngest is None:
            query = "SELECT COALESCE(MAX(sequence), 0) FROM entry WHERE problem = ?"
            (youngest,) = self._connection.execute(query, (self._id,)).fetchone()
            require_sound(are_counts(youngest) and youngest < MAX_COUNT, "sequence", youngest)
            self._youngest = youngest
        return self._youngest + 1

    def insert(self, entry: BookEntry, digest: bytes) -> None:
        """Write a new entry, whose key has this digest, as the youngest."""
        key = entry.key
        case = (key.expression, json.dumps(key.imports), key.expected, entry.direct)
        self._connection.execute(_INSERT, (self._id, digest, entry.sequence, *case, *_history(entry)))
        self._youngest = entry.sequence
        self.size += 1

    def update(self, entry: BookEntry) -> None:
        """Overwrite the counts and the provenance of the entry with this sequence number."""
        self._connection.execute(_UPDATE, (*_history(entry), self._id, entry.sequence))

    def delete(self, sequence: int, how: Leaving) -> None:
        """Remove one entry and write its departure."""
        self._connection.execute(_DEPART, (how.value, self.round, self._id, sequence))
        self._connection.execute("DELETE FROM entry WHERE problem = ? AND sequence = ?", (self._id, sequence))
        self._youngest = None
        self.size -= 1

    def trim(self, rules: BookRules) -> int:
        """Remove the least frequent entries (of equal ones the oldest first) above `max_entries`; return how many."""
        if rules.max_entries is None:
            return 0
        surplus = max(0, self.size - max(0, rules.max_entries))
        # Two steps: the index sorts by falling frequency, but equal frequencies by rising sequence number.
        least = "SELECT MIN(frequency) FROM entry WHERE problem = ?"
        weakest = "SELECT sequence FROM entry WHERE problem = ? AND frequency = ? ORDER BY sequence LIMIT ?"
        left = surplus
        while left > 0:
            (value,) = self._connection.execute(least, (self._id,)).fetchone()
            rows = self._connection.execute(weakest, (self._id, value, left)).fetchall()
            for (sequence,) in rows:
                self.delete(sequence, Leaving.EVICTED)
            left -= len(rows)
        return surplus

    def save_counts(self) -> None:
        """Write round and size; call it once at the end of the transaction."""
        self._connection.execute(
            "UPDATE problem SET round = ?, size = ? WHERE id = ?", (self.round, self.size, self._id)
        )
        if self.size != self._saved_size:
            self._connection.execute("UPDATE book SET size = size + ?", (self.size - self._saved_size,))
            self._saved_size = self.size

    def _select(self, clause: str, *parameters: object) -> list[BookEntry]:
        return [_entry(row) for row in self._connection.execute(f"{_SELECT} {clause}", (self._id, *parameters))]


def _history(entry: BookEntry) -> tuple[object, ...]:
    """Return the values of `_COUNT_COLUMNS` and `_PROVENANCE_COLUMNS`."""
    # These texts are only shown to people, so lone surrogates are escaped instead of refused.
    origin = [
        v.encode("utf-8", "backslashreplace").decode() if isinstance(v, str) else v
        for v in _PROVENANCE(entry.provenance)
    ]
    return (*_COUNTS(entry), *origin)


def _entry(row: tuple[Any, ...]) -> BookEntry:
    """Return the entry in a row.

    Raises:
        BadRow: it holds something else.
    """
    _, digest, sequence, expression, imports, expected, direct = row[:7]
    frequency, n_failed, n_evaluated, added_round, last_replayed_round = row[7:12]
    origin = Provenance(*row[12:])
    counts = (frequency, n_failed, n_evaluated, added_round, last_replayed_round)
    try:
        key = BookKey(expression, tuple(json.loads(imports)), expected)
        require_sound(are_counts(*counts, sequence, origin.round) and direct in (0, 1), "entry", sequence)
        require_sound(are_texts(expression, *key.imports, *row[12:14], *row[15:]), "entry", sequence)
        require_sound(key.digest() == digest, "entry", sequence)
        values.validate(expected)
        return BookEntry(key, bool(direct), *counts, sequence, origin)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadRow(f"its entry {sequence!r:.40} is damaged: {error}") from error


def require_sound(is_sound: bool, kind: str, name: object) -> None:
    """Raise BadRow, which names the row, unless it is sound."""
    if not is_sound:
        raise BadRow(f"its {kind} {name!r:.40} is damaged")


def are_counts(*numbers: object) -> bool:
    """Whether all are whole numbers from 0 to `MAX_COUNT`."""
    return all(type(number) is int and 0 <= number <= MAX_COUNT for number in numbers)


def are_texts(*texts: object) -> bool:
    """Whether every value is a string."""
    return all(isinstance(text, str) for text in texts)


_PAGE = 1000  # entries read at a time, so that a slow reader does not block writers


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry with the problem that it belongs to."""

    problem_id: str
    entry: BookEntry


class MistakeBook(Closing):
    """The test cases that programs have failed, by problem.

    Any number of threads and processes of one machine may use the same file, even across `os.fork`; each round is one
    transaction. When `record` returns, the round survives `kill -9` of any process and, unless
    `survives_power_loss=False`, a loss of power. Not for network file systems: SQLite's log needs shared memory.

    A book pickles as its path and can be unpickled only if the file exists. A book in memory cannot be pickled.

    >>> from codea1_env import MistakeBook, code_a1_v0
    >>> book = MistakeBook()
    >>> env = code_a1_v0.env("starter", book=book)
    >>> env.reset(seed=0, options={"problem_id": "starter/count_carries"})
    >>> env.step("def count_carries(a, b): return 0")
    >>> env.step("assert count_carries(5, 5) == 1")
    >>> [stored.entry.expression for stored in book.entries()]
    ['count_carries(5, 5)']
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        create: bool = True,
        read_only: bool = False,
        survives_power_loss: bool = True,
        busy_timeout_s: float = 60.0,
    ) -> None:
        """Open a book.

        Args:
            path: the file; None: a new book in memory.
            create: whether a missing file is created.
            read_only: whether the book is only read; works even if the file or its folder is not writable. In that
                case the content is that at the time of opening.
            survives_power_loss: whether every round waits for the disk. If False, a power loss may remove the last
                rounds, but never a part of a round.
            busy_timeout_s: seconds to wait for writes of other processes.

        Raises:
            BrokenInput: the file or folder does not exist, or it is not a Mistake Book of this schema version.
        """
        self._options: dict[str, Any] = {
            "create": create and not read_only,
            "read_only": read_only,
            "survives_power_loss": survives_power_loss,
            "busy_timeout_s": busy_timeout_s,
        }
        try:
            place = None if path is None else Path(path).expanduser().resolve()
        except (OSError, RuntimeError, TypeError, ValueError) as error:  # e.g. a loop of links, no home folder, a NUL
            raise BrokenInput(f"Mistake Book {str(path)!r}: {error}") from error
        self._database = BookDatabase(place, **self._options)

    @property
    def judge_version(self) -> int:
        """Version of the latest judge that has recorded a round in the book."""
        with self._database.reading() as connection:
            return _number(connection, "judge_version")

    def require_this_judge(self) -> None:
        """Do nothing if new rounds can be recorded in the book.

        Raises:
            UserError: a later version of the judge has recorded rounds in it.
        """
        if self.judge_version > JUDGE_VERSION and self.problem_ids():
            place = self.path or "the Mistake Book in memory"
            require_this_judge(self.judge_version, place, "begin a new book")

    @property
    def path(self) -> Path | None:
        """Absolute path of the file; None for a book in memory."""
        return self._database.path

    def retrieve(self, problem_id: str, rules: BookRules) -> tuple[BookEntry, ...]:
        """Return the entries to replay, as `select_replayed` chooses them; does not change the book.

        Reads at most `2 * n_replayed` rows.
        """
        with self._database.reading() as connection:
            rows = ProblemRows.find(connection, problem_id)
            pool = () if rows is None else rows.pool(rules)
        return select_replayed(pool, rules)

    def record(
        self,
        report: ProblemReport,
        rules: BookRules,
        provenance: Provenance | None = None,
        *,
        judge_version: int = JUDGE_VERSION,
    ) -> BookDelta:
        """Record one judged round of one problem, in one transaction; return what it changed.

        The round increases the problem's round number and marks its replayed entries as replayed, even if it brought no
        evidence. With the update rule OFF nothing is written.

        Args:
            report: the round; its `replayed` cases are those that `retrieve` returned.
            rules: how a round changes the book.
            provenance: run, episode and agents of the round; the failing program's digest, verdict and value are added
                for each new entry.
            judge_version: version of the judge that judged the round. The book adopts it unless it is older: entries of
                an earlier judge are confirmed as they are replayed, and those that it denies leave.

        Raises:
            UserError: a later version of the judge has recorded rounds in the book.
        """
        return self.apply(report.problem_id, changes(report, rules), rules, provenance, judge_version=judge_version)

    def apply(
        self,
        problem_id: str,
        book_changes: Iterable[BookChange],
        rules: BookRules,
        provenance: Provenance | None = None,
        *,
        judge_version: int = JUDGE_VERSION,
    ) -> BookDelta:
        """Do what `record` does, with the changes of a report that another process has computed.

        Args:
            problem_id: of the round.
            book_changes: the changes (`rules.mistake_book.changes`).
            rules: as of `record`, like the rest.
            provenance: likewise.
            judge_version: likewise.
        """
        if rules.update is BookUpdate.OFF:
            return BookDelta(size=self.size(problem_id))
        with self._database.writing() as connection:
            _agree_on_judge(connection, judge_version, self.path)
            rows = ProblemRows.find_or_add(connection, problem_id)
            rows.round += 1
            counts: Counter[str] = Counter()
            for change in book_changes:
                digest = change.key.digest()
                before = rows.get(digest)
                arrival = Arrival(rows.round, rows.next_sequence(), provenance or Provenance())
                after = entry_after(before, change, rules, arrival)
                if after is not None and before is not None:
                    rows.update(after)
                    counts["incremented"] += after.frequency > before.frequency
                    counts["decremented"] += after.frequency < before.frequency
                elif after is not None:
                    rows.insert(after, digest)
                    counts["added"] += 1
                elif before is not None:
                    rows.delete(before.sequence, Leaving.DENIED if change.is_denied else Leaving.FIXED)
                    counts["denied" if change.is_denied else "removed"] += 1
            counts["evicted"] = rows.trim(rules)
            rows.save_counts()
        return BookDelta(**counts, size=rows.size)

    def entries(self, problem_id: str | None = None) -> Iterator[StoredEntry]:
        """Yield the entries of one problem or of all problems, oldest first within a problem.

        Reads one page at a time, without a lock between pages, so entries that are recorded meanwhile may be included.
        """
        for name in self.problem_ids() if problem_id is None else (problem_id,):
            page: list[BookEntry] | None = None
            while page is None or page:
                after = page[-1].sequence if page else 0
                with self._database.reading() as connection:
                    rows = ProblemRows.find(connection, name)
                    page = [] if rows is None else rows.after(after, limit=_PAGE)
                yield from [StoredEntry(name, entry) for entry in page]

    def departures(self) -> Iterator[Period]:
        """Yield the periods that ended, of all problems, in the order of their ends; reads one page at a time."""
        after = 0
        while True:
            with self._database.reading() as connection:
                page = departures_after(connection, after, limit=_PAGE)
            if not page:
                return
            yield from (departure for _, departure in page)
            after = page[-1][0]

    def problem_ids(self) -> tuple[str, ...]:
        """Return the ids of all problems that had a round, with or without entries, ordered by first round."""
        with self._database.reading() as connection:
            names = tuple(name for (name,) in connection.execute("SELECT name FROM problem ORDER BY id"))
            require_sound(are_texts(*names), "list of", "problems")
        return names

    def size(self, problem_id: str | None = None) -> int:
        """Return the number of entries, of one problem or in all; reads a counter."""
        with self._database.reading() as connection:
            if problem_id is None:
                return _number(connection, "size")
            rows = ProblemRows.find(connection, problem_id)
            return 0 if rows is None else rows.size

    def round_of(self, problem_id: str) -> int:
        """Return how many rounds of the problem were recorded; 0 for an unknown problem."""
        with self._database.reading() as connection:
            rows = ProblemRows.find(connection, problem_id)
            return 0 if rows is None else rows.round

    def snapshot(self) -> bytes:
        """Return the whole book as the bytes of an SQLite file, for a checkpoint."""
        return self._database.snapshot()

    def restore(self, data: bytes) -> None:
        """Replace the whole content by a snapshot, for every process that uses the book.

        Raises:
            BrokenInput: the data is not a snapshot of a book; nothing has changed.
        """
        self._database.restore(data)

    def close(self) -> None:
        """Close permanently; idempotent. The content of a book in memory is lost."""
        self._database.close()

    def __repr__(self) -> str:
        return f"MistakeBook({'' if self.path is None else repr(str(self.path))})"

    def __reduce__(self) -> tuple[Any, ...]:
        if self.path is None:
            raise UserError("a Mistake Book in memory belongs to its process: give it a path, or send its snapshot()")
        options = {**self._options, "create": False}  # if the file is missing there: an error, not an empty book
        return partial(MistakeBook, str(self.path), **options), ()


def _number(connection: sqlite3.Connection, column: str) -> int:
    rows = connection.execute(f"SELECT {column} FROM book").fetchall()
    require_sound(len(rows) == 1 and are_counts(*rows[0]), "number", column)
    return int(rows[0][0])


def _agree_on_judge(connection: sqlite3.Connection, version: int, path: Path | None) -> None:
    own = _number(connection, "judge_version")
    if own == version:
        return
    if own < version or connection.execute("SELECT 1 FROM problem LIMIT 1").fetchone() is None:
        connection.execute("UPDATE book SET judge_version = ?", (version,))
    else:
        raise UserError(
            f"{path or 'the Mistake Book in memory'} has verdicts of version {own} of the judge, so it cannot"
            f" take new ones of version {version}"
        )
