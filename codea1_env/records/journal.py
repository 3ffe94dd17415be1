"""The common part of all run folders: a lock for one writer at a time, and a file to which lines are only appended.

A last line without line feed is incomplete, because its writer died: readers leave it out, and the next writer cuts it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from codea1_env.errors import BrokenInput, UserError
from codea1_env.records.closing import Closing
from codea1_env.records.faults import LONGEST
from codea1_env.records.file_errors import file_errors
from codea1_env.records.locks import LOCK, hold_folder
from codea1_env.records.whole_files import write_whole


class Journal(Closing):
    """The file of lines in a folder, open for appending; it locks the folder for other writers.

    Raises:
        UserError: another writer has locked the folder, it cannot be written, or it holds a link.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / name
        self._lock = hold_folder(folder)
        with file_errors(folder):
            self._file: BinaryIO = self.path.open("ab")

    @classmethod
    def begin(cls, folder: Path, name: str, advice: str) -> Journal:
        """Return the journal of a folder that is new or empty.

        Raises:
            UserError: the folder is a file, or is not empty (the message ends with the advice), or as above.
        """
        with file_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        require_empty(folder, advice, but=name)
        journal = cls(folder, name)
        with journal.close_on_error():
            # Again under the lock: two processes that start at once must not both find it empty.
            require_empty(folder, advice, but=name)
        return journal

    def append(self, lines: bytes, note: str = "") -> None:
        """Write whole lines so that they survive a crash of this process.

        Raises:
            UserError: they cannot be written, e.g. because the disk is full; the message ends with the note.
        """
        with file_errors(self.path.parent, note):
            self._file.write(lines)
            self._file.flush()

    def sync(self, note: str = "") -> None:
        """Make the written lines survive a crash of the machine, too; errors as in `append`."""
        with file_errors(self.path.parent, note):
            os.fsync(self._file.fileno())

    def replace(self, content: bytes) -> None:
        """Replace all lines, completely or not at all.

        Raises:
            OSError: the new lines cannot be written.
        """
        write_whole(self.path, content)
        self._file.close()
        self._file = self.path.open("ab")

    def close(self) -> None:
        """Close the file and release the lock; idempotent."""
        self._file.close()
        self._lock.close()


def require_empty(folder: Path, advice: str, *, but: str = "") -> None:
    """Raise UserError if a folder contains anything but a lock file and an empty file with the name `but`."""
    with file_errors(folder):
        for path in folder.iterdir():
            if path.name != LOCK and not (path.name == but and path.stat().st_size == 0):
                raise UserError(f"{folder} is not empty: {advice}")


def unused_folder(root: Path, now: datetime | None = None) -> Path:
    """Create and return a folder that is named after the time; two runs of the same second get different folders."""
    stem = f"{now or datetime.now():%Y%m%d-%H%M%S}"  # noqa: DTZ005  local time, for people
    for attempt in range(1, 1000):
        path = root / (stem if attempt == 1 else f"{stem}-{attempt}")
        with file_errors(root):
            root.mkdir(parents=True, exist_ok=True)
            try:
                path.mkdir()
            except FileExistsError:
                continue
        return path
    raise UserError(f"{root}: it has a thousand runs of this second; choose a folder with --out")


def whole_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file with their line feeds, without an incomplete last line.

    Raises:
        BrokenInput: one is longer than `LONGEST`.
    """
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(LONGEST + 1), b""), start=1):
            if len(line) > LONGEST:
                raise BrokenInput(f"{path} line {number}: expected at most {LONGEST:,} bytes, got more")
            if line.endswith(b"\n"):
                yield line


def last_line(path: Path, most: int = 1 << 24) -> bytes:
    """Return the last whole line of a file, of which only the last `most` bytes are read; empty: there is none."""
    with path.open("rb") as file:
        start = file.seek(max(0, file.seek(0, os.SEEK_END) - most))
        lines = file.read().split(b"\n")
    return lines[-2] if len(lines) > (2 if start else 1) else b""


def half_written(path: Path) -> int:
    """Return the number of bytes after a file's last line feed."""
    block = 1 << 16
    with path.open("rb") as file:
        size = end = file.seek(0, os.SEEK_END)
        while end > 0:
            start = max(0, end - block)
            file.seek(start)
            position = file.read(end - start).rfind(b"\n")
            if position >= 0:
                return size - (start + position + 1)
            end = start
    return size


def cut_half_written(path: Path) -> int:
    """Cut an incomplete last line; return its length in bytes."""
    length = half_written(path)
    if length:
        os.truncate(path, path.stat().st_size - length)
    return length
