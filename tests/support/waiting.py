"""Waiting for what another process or thread does, where there is no event to wait for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(condition: Callable[[], T], seconds: float = 10.0) -> T:
    """Return what `condition` returns as soon as it is true, and at the latest after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (result := condition()) and time.monotonic() < deadline:
        time.sleep(0.005)
    return result
