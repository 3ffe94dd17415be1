"""The rows of one problem in a Mistake Book's database: queries and writes, each of which uses an index.

A test counts the steps of SQLite's virtual machine in small and large books, so that no query scans a table.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import Any

from codea1_env import values
from codea1_env.book.database import BadRow
from codea1_env.errors import UserError
from codea1_env.rules.mistake_book import MAX_COUNT, BookEntry, BookKey, Provenance
from codea1_env.rules.ruleset import BookRetrieval, BookRules, BookUpdate

_KEY_COLUMNS = ("problem", "digest", "sequence", "expression", "imports", "expected", "direct")
_COUNT_COLUMNS = ("frequency", "n_failed", "n_evaluated", "quality", "added_round", "last_replayed_round")
_PROVENANCE_COLUMNS = ("run", "episode_id", "round", "coder", "tester", "program_sha256", "verdict", "actual")
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
    f"INSERT INTO departure SELECT problem, digest, expression, ?, added_round, ?, n_failed, n_evaluated,"
    f" {', '.join(_KEPT_ORIGIN)} FROM entry WHERE problem = ? AND sequence = ?"
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
    found = []
    for row in connection.execute(_DEPARTURES, (number, limit)):
        run, episode_id, played, coder, tester, program, verdict = row[9:]
        origin = Provenance(run, episode_id, played, coder, tester, program, verdict)
        number, problem_id, digest, expression, how, added, left, n_failed, n_evaluated = row[:9]
        counts = (added, left, n_failed, n_evaluated)
        is_sound = (
            are_counts(number, *counts, played)
            and are_texts(problem_id, expression, run, episode_id, coder, tester, program, verdict)
            and how in list(Leaving)
            and isinstance(digest, bytes)
        )
        require_sound(is_sound, "departure", number)
        found.append((number, Period(problem_id, digest, expression, Leaving(how), *counts, origin)))
    return found


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
        query = "SELECT id, round, size FROM problem WHERE name = ?"
        row = connection.execute(query, (_checked(problem_id),)).fetchone()
        if row is None:
            return None
        require_sound(are_counts(*row) and row[1] < MAX_COUNT, "problem", problem_id)
        return cls(connection, *row)

    @classmethod
    def find_or_add(cls, connection: sqlite3.Connection, problem_id: str) -> ProblemRows:
        """Return the problem's rows; add the problem if the book does not know it."""
        connection.execute("INSERT OR IGNORE INTO problem (name) VALUES (?)", (_checked(problem_id),))
        found = cls.find(connection, problem_id)
        if found is None:
            raise AssertionError(f"problem {problem_id!r} was added but is missing")
        return found

    def get(self, digest: bytes) -> BookEntry | None:
        """Return the entry whose key has this digest; None if there is none."""
        found = self._select("AND digest = ?", digest)
        return found[0] if found else None

    def after(self, sequence: int, *, limit: int) -> list[BookEntry]:
        """Return the next entries that are younger than `sequence`, oldest first."""
        return self._select("AND sequence > ? ORDER BY sequence LIMIT ?", sequence, limit)

    def pool(self, rules: BookRules) -> list[BookEntry]:
        """Return a set of entries that contains all that `select_replayed` can choose."""
        n_slots = max(0, rules.n_replayed)
        if rules.retrieval is BookRetrieval.QUALITY_SAMPLED:
            return self._select("ORDER BY sequence")
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
        values = (self._id, digest, entry.sequence, *case, *_counts(entry), *_origin(entry))
        self._connection.execute(_INSERT, values)
        self._youngest = entry.sequence
        self.size += 1

    def update(self, entry: BookEntry) -> None:
        """Overwrite the counts and the provenance of the entry with this sequence number."""
        self._connection.execute(_UPDATE, (*_counts(entry), *_origin(entry), self._id, entry.sequence))

    def delete(self, sequence: int, how: Leaving) -> None:
        """Remove one entry and write its departure."""
        self._connection.execute(_DEPART, (how.value, self.round, self._id, sequence))
        self._connection.execute("DELETE FROM entry WHERE problem = ? AND sequence = ?", (self._id, sequence))
        self._youngest = None
        self.size -= 1

    def trim(self, rules: BookRules) -> int:
        """Remove the weakest entries (of equal ones the oldest first) above `max_entries`; return how many."""
        if rules.max_entries is None:
            return 0
        surplus = max(0, self.size - max(0, rules.max_entries))
        column = "quality" if rules.update is BookUpdate.QUALITY else "frequency"
        # Two steps: the index sorts by falling frequency, but equal frequencies by rising sequence number.
        least = f"SELECT MIN({column}) FROM entry WHERE problem = ?"
        weakest = f"SELECT sequence FROM entry WHERE problem = ? AND {column} = ? ORDER BY sequence LIMIT ?"
        left = surplus
        while left > 0:
            (value,) = self._connection.execute(least, (self._id,)).fetchone()
            found = self._connection.execute(weakest, (self._id, value, left)).fetchall()
            for (sequence,) in found:
                self.delete(sequence, Leaving.EVICTED)
            left -= len(found)
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


def _counts(entry: BookEntry) -> tuple[object, ...]:
    rounds = (entry.added_round, entry.last_replayed_round)
    return (entry.frequency, entry.n_failed, entry.n_evaluated, entry.quality, *rounds)


def _origin(entry: BookEntry) -> tuple[object, ...]:
    # These texts are only shown to people, so lone surrogates are escaped instead of refused.
    return tuple(
        v.encode("utf-8", "backslashreplace").decode() if isinstance(v, str) else v
        for v in _PROVENANCE(entry.provenance)
    )


def _entry(row: tuple[Any, ...]) -> BookEntry:
    """Return the entry in a row.

    Raises:
        BadRow: it holds something else.
    """
    _, digest, sequence, expression, imports, expected, direct = row[:7]
    frequency, n_failed, n_evaluated, _, added_round, last_replayed_round = row[7:13]
    origin = Provenance(*row[13:])
    counts = (frequency, n_failed, n_evaluated, added_round, last_replayed_round)
    try:
        key = BookKey(expression, tuple(json.loads(imports)), expected)
        require_sound(are_counts(*counts, sequence, origin.round) and direct in (0, 1), "entry", sequence)
        require_sound(are_texts(expression, *key.imports, *row[13:15], *row[16:]), "entry", sequence)
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


def _checked(problem_id: str) -> str:
    try:
        problem_id.encode()
    except UnicodeEncodeError as error:
        raise UserError(f"problem id {problem_id!r}: not Unicode text") from error
    return problem_id
