"""What all run folders have in common: one writer at a time, and a file of lines that is only ever appended to.

A last line without line feed was being written when its process died: readers leave it out, the next writer cuts it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import BinaryIO
from weakref import WeakValueDictionary

from codea1_env.closing import Closing
from codea1_env.errors import UserError
from codea1_env.records.whole_files import write_whole

LOCK = ".lock"


class Journal(Closing):
    """The lines of a folder, open for appending; all others are kept out meanwhile.

    Raises:
        UserError: somebody is writing to the folder, it cannot be written, or the file is a link.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / name
        if self.path.is_symlink():  # what is appended, cut and replaced here is the folder's own
            raise UserError(f"{self.path}: a link, but a run is written into its own folder only")
        self._lock = hold_folder(folder)
        with file_errors(folder):
            self._file: BinaryIO = self.path.open("ab")

    @classmethod
    def begin(cls, folder: Path, name: str, advice: str) -> Journal:
        """Return the journal of a folder that is new or empty.

        Raises:
            UserError: the folder is a file, holds something (the message ends with the advice), or as above.
        """
        with file_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        require_empty(folder, advice, but=name)
        journal = cls(folder, name)
        try:  # once more under the lock: two that begin at once must not both find it empty
            require_empty(folder, advice, but=name)
        except UserError:
            journal.close()
            raise
        return journal

    def append(self, lines: bytes, consolation: str = "") -> None:
        """Write whole lines so that they survive a crash of this process.

        Raises:
            UserError: the disk is full or gone; the message ends with the consolation.
        """
        with file_errors(self.path.parent, consolation):
            self._file.write(lines)
            self._file.flush()

    def sync(self, consolation: str = "") -> None:
        """Make what was written survive a crash of the machine, too."""
        with file_errors(self.path.parent, consolation):
            os.fsync(self._file.fileno())

    def replace(self, content: bytes) -> None:
        """Put other lines in the place of those that are there, whole or not at all.

        Raises:
            OSError: they cannot be written.
        """
        write_whole(self.path, content)
        self._file.close()
        self._file = self.path.open("ab")

    def close(self) -> None:
        """Let go of the files; idempotent."""
        self._file.close()
        self._lock.close()


_held: WeakValueDictionary[tuple[int, int, int], BinaryIO] = WeakValueDictionary()
"""By process, device and inode of the folder, since a process never locks itself out, and a fork inherits no lock."""


def hold_folder(folder: Path) -> BinaryIO:
    """Keep all others out of a folder for as long as the returned file is open; a dead process's lock is free.

    Raises:
        UserError: this or another process is writing there, or it cannot be written.
    """
    with file_errors(folder):
        place = folder.stat()
        key = os.getpid(), place.st_dev, place.st_ino
        held = _held.get(key)
        if held is not None and not held.closed:
            raise UserError(f"{folder}: this process is writing to it already")
        lock = (folder / LOCK).open("ab")
        if not take_lock(lock, wait=False):
            lock.close()
            raise UserError(f"{folder}: another process is writing to it")
        _held[key] = lock
        return lock


def take_lock(file: BinaryIO, *, wait: bool) -> bool:
    """Return whether no other process has this file locked; from now on this one has, until the file is closed.

    It is a record lock: unlike flock's it is not shared with forked children, which may outlive a killed run by a
    moment; but closing any other handle of the same file gives it up, so the file should be there for nothing else.
    """
    try:
        import fcntl  # noqa: PLC0415  not on Windows, where two writers are not told apart
    except ImportError:
        return True
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        return error.errno not in (errno.EACCES, errno.EAGAIN)  # anything else: a file system without locks
    return True


def require_empty(folder: Path, advice: str, *, but: str = "") -> None:
    """Raise UserError where a folder holds anything but a lock and an empty file of the name `but`."""
    with file_errors(folder):
        for path in folder.iterdir():
            if path.name != LOCK and not (path.name == but and path.stat().st_size == 0):
                raise UserError(f"{folder} is not empty: {advice}")


def unused_folder(root: Path, now: datetime | None = None) -> Path:
    """Return a new folder named after the time; it is made, so that two runs of one second cannot share it."""
    stem = f"{now or datetime.now():%Y%m%d-%H%M%S}"  # noqa: DTZ005  people's own time
    for attempt in range(1, 1000):
        path = root / (stem if attempt == 1 else f"{stem}-{attempt}")
        with file_errors(root):
            root.mkdir(parents=True, exist_ok=True)
            try:
                path.mkdir()
            except FileExistsError:
                continue
        return path
    raise UserError(f"{root}: a thousand runs of one second; name a folder with --out")


def whole_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file with their line feeds; a half-written last one is left out."""
    with path.open("rb") as file:
        yield from (line for line in file if line.endswith(b"\n"))


def half_written(path: Path) -> int:
    """Return how many bytes stand after a file's last line feed."""
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
    """Cut a half-written last line; return its length in bytes."""
    length = half_written(path)
    if length:
        os.truncate(path, path.stat().st_size - length)
    return length


@contextmanager
def file_errors(path: Path, consolation: str = "") -> Iterator[None]:
    """Turn what the file system refuses into one sentence that names the place and ends with the consolation."""
    try:
        yield
    except OSError as error:
        place = error.filename or path
        is_file = isinstance(error, FileExistsError)
        said = "a file of this name is in the way" if is_file else error.strerror or error
        raise UserError(f"{place}: {said}{consolation}") from error
