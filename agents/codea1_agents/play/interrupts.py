"""Handles Ctrl-C, and SIGTERM, with which schedulers end jobs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt at SIGTERM inside the `with` block, so that cleanup runs.

    Does nothing outside the main thread, where Python cannot handle signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@contextmanager
def stop_requests() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether Ctrl-C or SIGTERM came inside the `with` block; a second one interrupts.

    Outside the main thread, where Python cannot handle signals, it returns False.
    """
    requested = threading.Event()

    def request(*_: object) -> None:
        if requested.is_set():
            raise KeyboardInterrupt
        requested.set()

    if threading.current_thread() is not threading.main_thread():
        yield requested.is_set
        return
    former = {number: signal.signal(number, request) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield requested.is_set
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
