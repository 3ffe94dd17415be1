"""Handles Ctrl-C, and SIGTERM, with which schedulers end jobs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def handled_signals(numbers: Iterable[signal.Signals], handler: Callable[..., object]) -> Iterator[None]:
    """Handle signals inside the `with` block.

    Does nothing outside the main thread, where Python cannot handle signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, before in former.items():
            signal.signal(number, before)


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Do at SIGTERM what Ctrl-C does at that time, inside the `with` block of the main thread, so that cleanup runs."""
    with handled_signals((signal.SIGTERM,), _interrupt):
        yield


def _interrupt(_: int, frame: FrameType | None) -> None:
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):  # a shell's background job ignores Ctrl-C
        raise KeyboardInterrupt
    handler(signal.SIGINT, frame)


@contextmanager
def stop_requests() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether Ctrl-C or SIGTERM came inside the `with` block; a second one interrupts.

    Outside the main thread it returns False.
    """
    requested = threading.Event()

    def request(*_: object) -> None:
        if requested.is_set():
            raise KeyboardInterrupt
        requested.set()

    with handled_signals(STOP_SIGNALS, request):
        yield requested.is_set
