"""Locks that keep other processes out of a run folder, or out of a piece of work."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from weakref import WeakValueDictionary

from codea1_env.errors import UserError
from codea1_env.records.file_errors import file_errors, require_plain

LOCK = ".lock"
"""Name of the lock file in a locked folder."""

_held: WeakValueDictionary[tuple[int, int, int], BinaryIO] = WeakValueDictionary()
"""By process, device and inode of a folder. A process can lock the same file twice; a fork inherits no lock."""


def hold_folder(folder: Path) -> BinaryIO:
    """Lock a folder for as long as the returned file is open; the lock of a dead process is released.

    Raises:
        UserError: this or another process has locked the folder, it cannot be written, or it holds a link.
    """
    with file_errors(folder):
        require_plain(folder, may_link=False)
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


@contextmanager
def hold_lock(file: Path) -> Iterator[None]:
    """Wait for a lock file of the block's own, which is gone after it, however it ends.

    Raises:
        OSError: it cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with file.open("ab") as lock:
            take_lock(lock, wait=True)
            if not _is_at(file, lock):
                continue  # the process that had it removed it meanwhile
            try:
                yield
            finally:
                file.unlink(missing_ok=True)
            return


def _is_at(place: Path, file: BinaryIO) -> bool:
    try:
        return os.path.samestat(place.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def take_lock(file: BinaryIO, *, wait: bool) -> bool:
    """Lock a file until it is closed; return False if another process has locked it.

    It is a record lock. Unlike the lock of flock, forked children do not share it, which may outlive a killed run
    briefly. But closing any other handle of the same file releases it, so the file should serve no other purpose.
    """
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        return error.errno not in (errno.EACCES, errno.EAGAIN)  # other errors: a file system without locks
    return True
