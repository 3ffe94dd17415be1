"""The Mistake Book on disk: one SQLite file, or memory. `rules.mistake_book` contains the rules that fill it.

A round finds its rows through indexes and reads and writes no others; sizes and round numbers are counters. So the cost
of a round does not grow with the book (`benchmarks/book.py`). The Code-A1 release writes the whole book after every
step.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from codea1_env.book.database import BookDatabase
from codea1_env.book.rows import (
    Leaving,
    Period,
    ProblemRows,
    are_counts,
    are_texts,
    departures_after,
    require_sound,
)
from codea1_env.errors import BrokenInput, UserError
from codea1_env.facts.judge_version import JUDGE_VERSION, require_this_judge
from codea1_env.facts.verdicts import ProblemReport
from codea1_env.records.closing import Closing
from codea1_env.rules.mistake_book import (
    Arrival,
    BookChange,
    BookDelta,
    BookEntry,
    Provenance,
    changes,
    entry_after,
    select_replayed,
)
from codea1_env.rules.ruleset import BookRules, BookUpdate

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
        self._database = BookDatabase(None if path is None else _resolved(path), **self._options)

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

    def retrieve(
        self, problem_id: str, rules: BookRules, rng: np.random.Generator | None = None
    ) -> tuple[BookEntry, ...]:
        """Return the entries to replay, as `select_replayed` chooses them; does not change the book.

        Reads at most `2 * n_replayed` rows, except for QUALITY_SAMPLED, which reads all entries of the problem: set
        `max_entries` to limit their number.

        Raises:
            UserError: QUALITY_SAMPLED without `rng`.
        """
        with self._database.reading() as connection:
            rows = ProblemRows.find(connection, problem_id)
            pool = () if rows is None else rows.pool(rules)
        return select_replayed(pool, rules, rng)

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
        wanted = changes(report, rules)
        if rules.update is BookUpdate.OFF:
            return BookDelta(size=self.size(report.problem_id))
        with self._database.writing() as connection:
            _agree_on_judge(connection, judge_version, self.path)
            rows = ProblemRows.find_or_add(connection, report.problem_id)
            rows.round += 1
            delta = _applied(rows, wanted, rules, provenance or Provenance())
            rows.save_counts()
        return delta

    def entries(self, problem_id: str | None = None) -> Iterator[StoredEntry]:
        """Yield the entries of one problem or of all problems, oldest first within a problem.

        Reads one page at a time, without a lock between pages, so entries that are recorded meanwhile may be included.
        """
        for name in self.problem_ids() if problem_id is None else (problem_id,):
            after = 0
            while page := self._page(name, after):
                yield from (StoredEntry(name, entry) for entry in page)
                after = page[-1].sequence

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

    def _page(self, problem_id: str, after: int) -> list[BookEntry]:
        with self._database.reading() as connection:
            rows = ProblemRows.find(connection, problem_id)
            return [] if rows is None else rows.after(after, limit=_PAGE)

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


def _resolved(path: str | Path) -> Path:
    try:
        return Path(path).expanduser().resolve()
    except (OSError, RuntimeError, TypeError, ValueError) as error:  # e.g. a loop of links, no home folder, a NUL
        raise BrokenInput(f"Mistake Book {str(path)!r}: {error}") from error


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


def _applied(rows: ProblemRows, wanted: Iterable[BookChange], rules: BookRules, provenance: Provenance) -> BookDelta:
    counts: Counter[str] = Counter()
    for change in wanted:
        digest = change.key.digest()
        before = rows.get(digest)
        arrival = Arrival(rows.round, rows.next_sequence(), provenance)
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
    return BookDelta(**counts, size=rows.size)
