"""Semaphores of `multiprocessing` that need no file: pools of threads and their queues use them.

A program has one process, so what it shares, it shares with its threads.
"""

from __future__ import annotations

import contextlib
from importlib import import_module
from typing import Any

_MUTEX, _MOST = 0, 0x7FFFFFFF


class SemLock:
    """Counts as `_multiprocessing.SemLock` does, from `value` to `maxvalue`; the other arguments change nothing."""

    SEM_VALUE_MAX = _MOST

    def __init__(self, kind: int, value: int, maxvalue: int, name: str, unlink: bool) -> None:
        import threading  # noqa: PLC0415  -- it would use memory in every job

        self.kind, self.maxvalue, self.name, self.handle = kind, maxvalue, None, 0  # no name: no process shares it
        self._free, self._thread = threading.Semaphore(value), threading.get_ident
        self._owner, self._n_acquired = 0, 0

    def acquire(self, block: bool = True, timeout: float | None = None) -> bool:
        """Take one; return whether that was possible, within `timeout` seconds if given."""
        if self.kind == _MUTEX and self._is_mine():
            self._n_acquired += 1
            return True
        wait_s = max(0.0, timeout) if block and timeout is not None else None
        acquired = self._free.acquire(block, wait_s)
        if acquired:
            self._owner, self._n_acquired = self._thread(), self._n_acquired + 1
        return acquired

    def release(self) -> None:
        """Give one back.

        Raises:
            AssertionError: a recursive lock belongs to another thread.
            ValueError: all are there.
        """
        if self.kind == _MUTEX and not self._is_mine():
            raise AssertionError("attempt to release recursive lock not owned by thread")
        if self.kind != _MUTEX and self._get_value() >= self.maxvalue:
            raise ValueError("semaphore or lock released too many times")
        self._n_acquired -= 1
        if self.kind != _MUTEX or not self._n_acquired:
            self._free.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def _count(self) -> int:
        return self._n_acquired

    def _is_mine(self) -> bool:
        return self._n_acquired > 0 and self._owner == self._thread()

    def _get_value(self) -> int:
        return self._free._value

    def _is_zero(self) -> bool:
        return not self._get_value()


def install() -> None:
    """Make `multiprocessing` use them."""
    with contextlib.suppress(ImportError):  # not every Python has it
        module: Any = import_module("_multiprocessing")
        SemLock.__module__ = module.__name__
        module.SemLock = SemLock
