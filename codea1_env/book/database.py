"""The SQLite file of a Mistake Book: opening it, transactions, forks, snapshots. `rows` describes its rows.

Theory of operation. The file is in write-ahead-log mode: readers never wait, writers queue up, and if a process is
killed, either the whole of its transaction is in the file or nothing of it. One lock per process guards all
connections, so that a fork can wait for running transactions and close the connections first. This is necessary because
SQLite keeps its file locks in process memory: a child that inherits an open connection would treat the parent's locks
as its own (sqlite.org/howtocorrupt.html, 2.6). Parent and child reopen the file at their next use.

Even a reader of such a file writes: it registers in a file of shared memory. If the file or its folder is not writable,
the database is opened as immutable, unless its write-ahead log contains data.
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from codea1_env.errors import BrokenInput, UserError
from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_env.records.file_errors import mode_of

_APPLICATION_ID = 0x43413142  # "CA1B"
_SCHEMA_VERSION = 4
_ORIGIN_COLUMNS = """run TEXT NOT NULL,
        episode_id TEXT NOT NULL,
        round INTEGER NOT NULL,
        coder TEXT NOT NULL,
        tester TEXT NOT NULL,
        program_sha256 TEXT NOT NULL,
        verdict TEXT NOT NULL"""
_SCHEMA = (
    "CREATE TABLE book (size INTEGER NOT NULL CHECK (size >= 0), judge_version INTEGER NOT NULL)",
    f"INSERT INTO book VALUES (0, {JUDGE_VERSION})",
    """CREATE TABLE problem (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        round INTEGER NOT NULL DEFAULT 0 CHECK (round >= 0),
        size INTEGER NOT NULL DEFAULT 0 CHECK (size >= 0)
    )""",
    f"""CREATE TABLE entry (
        problem INTEGER NOT NULL REFERENCES problem (id),
        digest BLOB NOT NULL,
        sequence INTEGER NOT NULL CHECK (sequence >= 1),
        expression TEXT NOT NULL,
        imports TEXT NOT NULL, -- JSON list of strings
        expected BLOB NOT NULL,
        direct INTEGER NOT NULL,
        frequency INTEGER NOT NULL CHECK (frequency >= 1),
        n_failed INTEGER NOT NULL CHECK (n_failed >= 1),
        n_evaluated INTEGER NOT NULL CHECK (n_evaluated >= n_failed),
        added_round INTEGER NOT NULL CHECK (added_round >= 0),
        last_replayed_round INTEGER NOT NULL CHECK (last_replayed_round >= 0),
        {_ORIGIN_COLUMNS},
        actual TEXT NOT NULL
    )""",
    # One index per query of a round, so that no query reads more rows than it returns.
    "CREATE UNIQUE INDEX entry_by_key ON entry (problem, digest)",
    "CREATE UNIQUE INDEX entry_by_age ON entry (problem, sequence)",
    "CREATE INDEX entry_by_frequency ON entry (problem, frequency DESC, sequence)",
    "CREATE INDEX entry_by_last_try ON entry (problem, MAX(added_round, last_replayed_round), sequence)",
    f"""CREATE TABLE departure (
        problem INTEGER NOT NULL REFERENCES problem (id),
        digest BLOB NOT NULL,
        expression TEXT NOT NULL,
        how TEXT NOT NULL,
        added_round INTEGER NOT NULL,
        left_round INTEGER NOT NULL,
        n_failed INTEGER NOT NULL,
        n_evaluated INTEGER NOT NULL,
        {_ORIGIN_COLUMNS}
    )""",  # without an index: it is only appended to and read completely, and an index would slow a round down
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_SCHEMA_VERSION}",
)

_SNAPSHOT = "Mistake Book snapshot"


class BadRow(Exception):
    """A row holds what this program never writes. Anybody may have made the file, or a disk has damaged it."""


_process_lock = threading.RLock()
_databases: weakref.WeakSet[BookDatabase] = weakref.WeakSet()


class BookDatabase:
    """A connection that opens when needed, may be used from any thread, and survives a fork."""

    def __init__(
        self, path: Path | None, *, create: bool, read_only: bool, survives_power_loss: bool, busy_timeout_s: float
    ) -> None:
        self.path = path
        self._create = create
        self._read_only = read_only
        self._synchronous = "FULL" if survives_power_loss else "NORMAL"
        self._busy_timeout_s = busy_timeout_s
        self._connection: sqlite3.Connection | None = None
        self._finalizer: weakref.finalize[[], BookDatabase] | None = None
        self._closed = False
        with _process_lock, self._explain_errors():
            _databases.add(self)
            self._connect()

    @property
    def place(self) -> str:
        """Name of the book in messages."""
        return f"Mistake Book {self.path}" if self.path else "in-memory Mistake Book"

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """Enter a connection on which all reads see the same state."""
        return self._transaction("BEGIN")

    def writing(self) -> AbstractContextManager[sqlite3.Connection]:
        """Enter a connection whose writes are committed together when the block ends, or not at all."""
        return self._transaction("BEGIN IMMEDIATE")

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with _process_lock, self._explain_errors():
            connection = self._connect()
            with _within(connection, begin):
                yield connection

    def snapshot(self) -> bytes:
        """Return the whole database as the bytes of a database file."""
        with _scratch_file() as file, _process_lock, self._explain_errors():
            image = sqlite3.connect(file)
            try:
                self._connect().backup(image)
            finally:
                image.close()
            return file.read_bytes()

    def restore(self, data: bytes) -> None:
        """Replace the whole database by what `snapshot` returned.

        Raises:
            BrokenInput: the bytes are not a snapshot; nothing has changed.
        """
        with _scratch_file() as file:
            file.write_bytes(data)
            image = sqlite3.connect(file, isolation_level=None)
            try:
                _check_snapshot(image)
                with _process_lock, self._explain_errors():
                    image.backup(self._connect())
            finally:
                image.close()

    def close(self) -> None:
        """Close permanently; idempotent."""
        with _process_lock:
            self._closed = True
            self._disconnect()

    def close_until_next_use(self) -> None:
        """Close the file until the next use; a database in memory stays as it is."""
        if self.path is not None:
            self._disconnect()

    def _disconnect(self) -> None:
        if self._finalizer is not None:
            self._finalizer()
        self._connection = self._finalizer = None

    def _connect(self) -> sqlite3.Connection:
        if self._closed:
            raise UserError(f"{self.place} is closed")
        if self._connection is None:
            self._connection = self._open()
            self._finalizer = weakref.finalize(self, self._connection.close)
        return self._connection

    def _open(self) -> sqlite3.Connection:
        deadline = time.monotonic() + self._busy_timeout_s
        while True:
            try:
                return self._open_once()
            except sqlite3.OperationalError as error:
                # Switching to the log and repairs after a crash need exclusive access; SQLite does not wait for it.
                code = getattr(error, "sqlite_errorcode", 0) & 0xFF
                if code not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) or time.monotonic() > deadline:
                    raise
            time.sleep(0.01)

    def _open_once(self) -> sqlite3.Connection:
        if self.path is not None:
            _check_place(self.path, create=self._create)
        effective, places = os.access in os.supports_effective_ids, (self.path, self.path.parent) if self.path else ()
        is_writable = all(os.access(place, os.W_OK, effective_ids=effective) for place in places)
        frozen = self._read_only and not is_writable
        connection = sqlite3.connect(
            self._read_only_uri() if frozen else self.path or ":memory:",
            uri=frozen,
            timeout=self._busy_timeout_s,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            self._prepare(connection, frozen=frozen)
        except BaseException:
            connection.close()
            raise
        return connection

    def _read_only_uri(self) -> str:
        """Return a URI that opens the file without writing to its folder."""
        assert self.path is not None  # a book in memory is always writable
        log = self.path.with_name(self.path.name + "-wal")
        if not (log.exists() and log.stat().st_size):
            return f"{self.path.as_uri()}?mode=ro&immutable=1"
        raise BrokenInput(f"{self.place}: {log.name} has rounds that only a writer can read: copy both files")

    def _prepare(self, connection: sqlite3.Connection, *, frozen: bool) -> None:
        connection.execute("PRAGMA trusted_schema = OFF")  # the file may be untrusted
        connection.execute("BEGIN")  # all checks must see one state: another process may be making the schema
        fresh = _is_fresh(connection, self.place)  # checked first: a database that is not a book must not be changed
        connection.execute("COMMIT")
        if fresh and self._read_only:
            raise BrokenInput(f"{self.place}: is empty")
        if frozen:
            return
        connection.execute("PRAGMA page_size = 4096")  # `restore` needs equal page sizes; no effect on existing files
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        if not fresh:
            return
        with _within(connection, "BEGIN IMMEDIATE"):
            if _is_fresh(connection, self.place):  # else another process has made the schema
                for statement in _SCHEMA:
                    connection.execute(statement)

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Turn SQLite's errors about the file into BrokenInput; errors caused by this program stay as they are."""
        try:
            yield
        except BadRow as error:
            raise BrokenInput(f"{self.place}: {error}") from error
        except UnicodeDecodeError as error:  # a message of SQLite that quotes a damaged schema
            raise BrokenInput(f"{self.place}: is damaged") from error
        except sqlite3.DatabaseError as error:
            if (
                isinstance(error, sqlite3.OperationalError | sqlite3.IntegrityError)
                or type(error) is sqlite3.DatabaseError
            ):
                raise BrokenInput(f"{self.place}: {error}") from error
            raise


@contextmanager
def _within(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    """Commit what the block does, or nothing of it."""
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _is_fresh(connection: sqlite3.Connection, place: str) -> bool:
    """Return whether the database is empty.

    Raises:
        BrokenInput: it is not a Mistake Book, or this version cannot read it.
    """
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application_id == _APPLICATION_ID:
        if version != _SCHEMA_VERSION:
            raise BrokenInput(f"{place}: expected schema version {_SCHEMA_VERSION}, got {version}")
        made = [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")]
        if sorted(map(_normal, made)) != sorted(_normal(sql) for sql in _SCHEMA if sql.startswith("CREATE ")):
            raise BrokenInput(f"{place}: has other tables than a Mistake Book")  # such as a view that never ends
        return False
    (n_tables,) = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    if application_id or version or n_tables:
        raise BrokenInput(f"{place}: is a database, but not a Mistake Book")
    return True


def _normal(sql: object) -> str:
    return " ".join(re.sub("--.*", "", str(sql)).split())


def _check_snapshot(image: sqlite3.Connection) -> None:
    try:
        sound = not _is_fresh(image, _SNAPSHOT) and image.execute("PRAGMA quick_check").fetchone() == ("ok",)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise BrokenInput(f"{_SNAPSHOT}: {error}") from error
    if not sound:
        raise BrokenInput(f"{_SNAPSHOT}: empty or damaged")


@contextmanager
def _scratch_file() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="codea1-book-") as folder:
        yield Path(folder, "book.sqlite")


def _check_place(path: Path, *, create: bool) -> None:
    try:
        if stat.S_ISDIR(mode_of(path)):
            raise BrokenInput(f"Mistake Book {path}: is a folder")
        if not stat.S_ISDIR(mode_of(path.parent)):
            raise BrokenInput(f"Mistake Book {path}: the folder {path.parent} does not exist")
        if mode_of(path) and not stat.S_ISREG(mode_of(path)):
            raise BrokenInput(f"Mistake Book {path}: is not a file")
        if not create and not mode_of(path):
            raise BrokenInput(f"Mistake Book {path}: no such file")
    except OSError as error:  # a parent folder may not be accessible, or the name may be too long
        raise BrokenInput(f"Mistake Book {path}: {error.strerror or error}") from error


def _before_fork() -> None:
    _process_lock.acquire()
    for database in list(_databases):
        database.close_until_next_use()


def _after_fork() -> None:
    _process_lock.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
