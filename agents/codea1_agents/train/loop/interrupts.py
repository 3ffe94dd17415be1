"""Ctrl-C and SIGTERM during a run: what is done is saved first."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress

from codea1_agents.interrupts import STOP_SIGNALS, handled_signals

_FIRST = "interrupted: {} is finished and saved first; press Ctrl-C again to discard it"
_DEFERRED = "interrupted again: {} is finished and saved first; press Ctrl-C once more to stop at once"


class Interrupts:
    """Handles signals while `handle()` is entered in the main thread.

    The first one ends the run after the present step. The second one discards this step, unless earlier ones would be
    lost, too. The third one ends the run at once.

    Args:
        may_discard: whether the steps before the present one are saved or can still be saved.
        present: says what is running, as in "this step".
        note: shows a message.
    """

    def __init__(
        self, may_discard: Callable[[], bool], present: Callable[[], str], note: Callable[[str], object]
    ) -> None:
        self._may_discard, self._present, self._note = may_discard, present, note
        self._n_signals = 0
        self.discards_step = False
        """Whether the `KeyboardInterrupt` that was raised discards the present step only. Ray replaces exceptions of
        signal handlers by its own, so their class cannot say so."""

    @property
    def requested(self) -> bool:
        """True once SIGINT or SIGTERM was received."""
        return self._n_signals > 0

    def handle(self) -> AbstractContextManager[None]:
        """Return a context in which signals are handled so."""
        return handled_signals(STOP_SIGNALS, self._on_signal)

    def _on_signal(self, *_: object) -> None:
        """Raise KeyboardInterrupt at the second signal, if earlier steps stay, and at the third."""
        self._n_signals += 1
        self.discards_step = self._n_signals == 2 and self._may_discard()
        if self.discards_step or self._n_signals > 2:
            raise KeyboardInterrupt
        with suppress(RuntimeError):  # the signal came while the same stream was being written
            self._note((_FIRST if self._n_signals == 1 else _DEFERRED).format(self._present()))
