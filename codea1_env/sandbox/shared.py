"""Sandboxes of which a process has one."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

_T = TypeVar("_T")


def one_per_process(make: Callable[[], _T]) -> Callable[[], _T]:
    """Return a function that makes something when it is first called and gives the same afterwards, in all threads."""
    lock = threading.RLock()
    made: list[_T] = []

    @wraps(make)
    def given() -> _T:
        with lock:
            if not made:
                made.append(make())
            return made[0]

    if hasattr(os, "register_at_fork"):  # no child is forked while another thread holds the lock
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return given
