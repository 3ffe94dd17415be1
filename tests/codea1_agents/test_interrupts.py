from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial

import pytest

from codea1_agents.interrupts import handled_signals, sigterm_interrupts
from codea1_agents.ray_sandbox import init_ray


def test_sigterm_is_an_interrupt_within_and_what_it_was_afterwards_and_in_other_threads() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), sigterm_interrupts():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before
    entered = []

    def enter() -> None:
        with sigterm_interrupts():
            entered.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert entered == [signal.getsignal(signal.SIGTERM)]


def test_sigterm_does_what_ctrl_c_does_at_that_time_and_interrupts_where_that_is_ignored() -> None:
    received = []
    with handled_signals((signal.SIGINT,), lambda number, _: received.append(number)), sigterm_interrupts():
        signal.raise_signal(signal.SIGTERM)
    assert received == [signal.SIGINT]
    with handled_signals((signal.SIGINT,), signal.SIG_IGN), pytest.raises(KeyboardInterrupt), sigterm_interrupts():
        signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize("exits", [False, True])
def test_the_handler_that_ray_sets_does_not_stay(exits: bool) -> None:
    class Ray:
        @staticmethod
        def init(**_: object) -> None:
            signal.signal(signal.SIGTERM, lambda number, _: sys.exit(number))
            if exits:
                signal.raise_signal(signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt) if exits else nullcontext():
        init_ray(Ray)
    assert signal.getsignal(signal.SIGTERM) == before


def test_an_interrupt_that_python_drops_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[type[BaseException]] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: dropped.append(args.exc_type))

    class Owner:
        def __init__(self, work: Callable[[], object]) -> None:
            self.work = work

        def __del__(self) -> None:
            self.work()

    def drop() -> None:
        Owner(lambda: 1 / 0)
        Owner(partial(signal.raise_signal, signal.SIGTERM))
        threading.Event().wait(30)

    with pytest.raises(KeyboardInterrupt), sigterm_interrupts():
        drop()
    assert dropped == [ZeroDivisionError]
