"""Calls an agent in a thread of its own, so that a call that never returns can be given up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from codea1_env.agent.event_loop import CLOSE_TIMEOUT_S, done_within, too_late
from codea1_env.errors import AgentUnavailable

_T = TypeVar("_T")

REPLY_TIMEOUT_S = 600.0
"""The default limit of one reply."""


class CallThread:
    """Makes calls in one daemon thread, one after the other.

    Python cannot end a thread: one whose call was given up ends with that call, or with the process. The next call
    gets a new thread.
    """

    def __init__(self, name: str, limit_s: float | None) -> None:
        """Make a thread that starts with the first call.

        Args:
            name: of the agent.
            limit_s: of one call; None: no limit, and calls are made in the caller's thread.
        """
        self._name, self._limit_s = name, limit_s
        self._calls: SimpleQueue[_Call | None] | None = None
        self._last: Future[Any] | None = None
        self.gave_up = False
        """Whether a call has been given up."""

    def call(self, function: Callable[..., _T], *arguments: object, n_replies: int = 1) -> _T:
        """Return the result of a call, which has `n_replies` times the limit; Ctrl-C does not wait for the call.

        Raises:
            AgentUnavailable: it did not return in time.
        """
        if self._limit_s is None:
            return function(*arguments)
        done: Future[_T] = Future()
        self._last = done
        try:
            self._started().put((done, function, arguments))
            if done_within(done, n_replies * self._limit_s):
                return done.result()
            raise too_late(self._name, self._limit_s)
        finally:
            if not done.done():
                self._give_up()

    def close(self, last: Callable[[], object]) -> None:
        """Make a last call and end the thread.

        A call that is still in progress is given up. Then `last`, which may wait for that call, has `CLOSE_TIMEOUT_S`.
        """
        if self._last is not None and not self._last.done():
            self._give_up()
        if self.gave_up and self._limit_s is not None:
            self._limit_s = min(self._limit_s, CLOSE_TIMEOUT_S)
        with suppress(AgentUnavailable):
            self.call(last)
        self._let_end()

    def _give_up(self) -> None:
        self.gave_up = True
        self._let_end()

    def _let_end(self) -> None:
        if self._calls is not None:
            self._calls.put(None)
            self._calls = None

    def _started(self) -> SimpleQueue[_Call | None]:
        if self._calls is None:
            self._calls = SimpleQueue()
            threading.Thread(target=_serve, args=(self._calls,), name=self._name, daemon=True).start()
        return self._calls


_Call = tuple[Future[Any], Callable[..., Any], tuple[object, ...]]


def _serve(calls: SimpleQueue[_Call | None]) -> None:
    while (call := calls.get()) is not None:
        done, function, arguments = call
        try:
            done.set_result(function(*arguments))
        except BaseException as error:  # noqa: BLE001  raised in the caller's thread
            done.set_exception(error)
        del call, done, function, arguments  # while it waits, the thread keeps nothing alive
