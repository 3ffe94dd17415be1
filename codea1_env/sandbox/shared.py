"""One shared sandbox per process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

_T = TypeVar("_T")


def one_per_process(make: Callable[[], _T]) -> Callable[[], _T]:
    """Return a function that calls `make` once and then returns the same object, in all threads."""
    lock = threading.RLock()
    made: list[_T] = []

    @wraps(make)
    def shared() -> _T:
        with lock:
            if not made:
                made.append(make())
            return made[0]

    if hasattr(os, "register_at_fork"):  # else a child could inherit a held lock
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return shared
