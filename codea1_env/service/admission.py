"""Decides which requests run, which wait, and which are refused."""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar

from codea1_env.errors import CodeA1Error

_T = TypeVar("_T")

_trim = getattr(ctypes.CDLL(None), "malloc_trim", lambda _: None)
"""Gives freed memory back to the system: else each thread keeps as much as its largest request has taken (glibc)."""

WAYS_TO_WAIT = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
BUSY = "the server has as many requests as it can hold: try again"
STOPPING = "the server is being stopped"


class Refused(CodeA1Error):
    """A request is not run; `status` is that of the response."""

    def __init__(self, status: HTTPStatus, detail: str) -> None:
        super().__init__(detail)
        self.status_code = status


class Admission:
    """Runs the work of requests in threads, so many at the same time; the rest waits, up to a number."""

    def __init__(self, n_running: int, n_waiting: int) -> None:
        self._most = n_running + n_waiting
        self.n_open = 0
        """Requests that wait or run."""
        self._lock = threading.Lock()
        self.is_stopping = False
        """Whether `stop` was called."""
        self._threads = ThreadPoolExecutor(n_running, thread_name_prefix="codea1-request")

    async def run(self, work: Callable[[], _T]) -> _T:
        """Return what `work` returns. If the caller is cancelled before `work` has begun, it never begins.

        Args:
            work: runs in a thread.

        Raises:
            Refused: too many wait (429), or the server is being stopped (503).
        """
        if self.is_stopping:
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, STOPPING)
        with self._lock:
            if self.n_open >= self._most:
                raise Refused(HTTPStatus.TOO_MANY_REQUESTS, BUSY)
            self.n_open += 1
        is_given_up, loop = threading.Event(), asyncio.get_running_loop()
        found: asyncio.Future[_T] = loop.create_future()
        self._threads.submit(self._ran, work, is_given_up).add_done_callback(partial(_pass_on, loop, found))
        try:
            return await found
        except asyncio.CancelledError:
            is_given_up.set()
            raise

    def stop(self) -> None:
        """Refuse all requests from now on, including those that wait; those that run go on. Idempotent."""
        self.is_stopping = True
        self._threads.shutdown(wait=False)

    def _ran(self, work: Callable[[], _T], is_given_up: threading.Event) -> Any:
        # A request that is given up keeps its place, and its body, until here: clients that leave cannot fill memory.
        try:
            if self.is_stopping:
                raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, STOPPING)
            return None if is_given_up.is_set() else work()
        finally:
            _trim(0)
            with self._lock:
                self.n_open -= 1


def _pass_on(loop: asyncio.AbstractEventLoop, found: asyncio.Future[_T], done: Future[_T]) -> None:
    """Give a thread's result to the loop; unlike with `wrap_future`, a cancelled caller does not empty its place."""

    def deliver() -> None:
        if found.done():  # its caller was cancelled
            return
        error = done.exception()
        if error is None:
            found.set_result(done.result())
        else:
            found.set_exception(error)

    with suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(deliver)
