"""Handles Ctrl-C, and SIGTERM, with which schedulers end jobs."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def handled_signals(
    numbers: Iterable[signal.Signals], handler: Callable[..., object], then: signal.Handlers | None = None
) -> Iterator[None]:
    """Handle signals inside the `with` block, and after it as `then` says; by default as before it.

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
            signal.signal(number, before if then is None else then)


@contextmanager
def sigterm_interrupts(then: signal.Handlers | None = None) -> Iterator[None]:
    """Do at SIGTERM what Ctrl-C does at that time, inside the `with` block of the main thread, so that cleanup runs.

    Python drops what a signal's handler raises within a finalizer or another callback: such an interrupt comes again.
    After the block, `then` holds as in `handled_signals`.
    """
    former = sys.unraisablehook

    def interrupt_again(dropped: sys.UnraisableHookArgs) -> None:
        if dropped.exc_type is KeyboardInterrupt:
            threading.Timer(0.05, _thread.interrupt_main, (signal.SIGTERM,)).start()
        else:
            former(dropped)

    with handled_signals((signal.SIGTERM,), _interrupt, then):
        sys.unraisablehook = interrupt_again
        try:
            yield
        finally:
            sys.unraisablehook = former


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
