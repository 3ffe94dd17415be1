"""Waiting for what another process or thread does, where there is no event to wait for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Clock:
    """In the place of the module `time`: stands still until a test sets it."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


def wait_until(condition: Callable[[], T], seconds: float = 10.0) -> T:
    """Return what `condition` returns as soon as it is true, and at the latest after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (result := condition()) and time.monotonic() < deadline:
        time.sleep(0.005)
    return result
