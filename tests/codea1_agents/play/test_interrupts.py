from __future__ import annotations

import signal
import threading

import pytest

from codea1_agents.play.interrupts import sigterm_interrupts


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
