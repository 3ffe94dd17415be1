"""One thread at a time reads Python, where CPython needs that."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_IS_NEEDED = sys.version_info[:3] < (3, 11, 8)


class ParsingLock:
    """Keeps `ast.parse` from running in two threads; nothing but a formality from CPython 3.11.8 on.

    Before, threads share one count of how deep a tree is, and now and then a parse ends with a SystemError
    (python/cpython#106905). Judges and most scripted agents parse; agents that say they are `thread_safe` are not held.
    """

    def __init__(self, *, is_needed: bool = _IS_NEEDED) -> None:
        self._lock = threading.Lock() if is_needed else None
        self._holder = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Within, this thread alone may parse."""
        if self._lock is None:
            yield
            return
        with self._lock:
            self._holder = threading.get_ident()
            try:
                yield
            finally:
                self._holder = 0

    @contextmanager
    def released(self) -> Iterator[None]:
        """Within, others may parse, if this thread holds the lock: it only waits."""
        if self._lock is None or self._holder != threading.get_ident():
            yield
            return
        self._holder = 0
        self._lock.release()
        try:
            yield
        finally:
            self._lock.acquire()
            self._holder = threading.get_ident()
