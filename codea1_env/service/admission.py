"""Decides which requests run, which wait, and which are refused."""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar, copy_context
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar

from codea1_env.errors import CodeA1Error

_T = TypeVar("_T")

_C = ctypes.CDLL(None)
_trim, _mallopt = (getattr(_C, name, lambda *_: None) for name in ("malloc_trim", "mallopt"))
"""Give freed memory back to the system: else each thread keeps as much as its largest request has taken (glibc)."""
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8

WAYS_TO_WAIT = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
BUSY = "the server has as many requests as it can hold: try again"
STOPPING = "the server is being stopped"
_TOO_MUCH = "a request must take, with its answer, at most {most} bytes of memory on this server: send less at once"


class Refused(CodeA1Error):
    """A request is not run; `status` is that of the response."""

    def __init__(self, status: HTTPStatus, detail: str) -> None:
        super().__init__(detail)
        self.status_code = status


class HeldBytes:
    """The bytes that all requests of a server hold together: bodies, what is made of them, answers. Thread-safe.

    A request may hold as much as is left to the others (Choudhury and Hahne, 1998): the more are greedy, the less each
    gets, and what is left is always enough for one that needs little.
    """

    def __init__(self, most: int) -> None:
        self.most, self.n_bytes, self.lock = most, 0, threading.Lock()
        _mallopt(_M_MMAP_THRESHOLD, 1 << 20)  # else it grows to 32 MiB, and what is freed stays in pieces
        _mallopt(_M_ARENA_MAX, 2)


class Holding:
    """The bytes that one request holds. Thread-safe."""

    def __init__(self, of_server: HeldBytes) -> None:
        self._of_server, self._n_bytes, self._is_over = of_server, 0, False

    def take(self, n_bytes: int) -> None:
        """Hold so many bytes more; fewer, if it is negative.

        Raises:
            Refused: that is too much for any request (413), or for one more (429).
        """
        held = self._of_server
        with held.lock:
            now, left = self._n_bytes + n_bytes, held.most - held.n_bytes - n_bytes
            if n_bytes > 0 and now > held.most // 2:
                raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _TOO_MUCH.format(most=held.most // 2))
            if n_bytes > 0 and (now > left or self._is_over):
                raise Refused(HTTPStatus.TOO_MANY_REQUESTS, BUSY)
            if not self._is_over:
                self._n_bytes, held.n_bytes = now, held.n_bytes + n_bytes

    def close(self) -> None:
        """Hold nothing from now on."""
        self.take(-self._n_bytes)
        self._is_over = True


HOLDING: ContextVar[Holding] = ContextVar("HOLDING")
"""That of the request that is served here."""


class Admission:
    """Runs the work of requests in threads, so many at the same time; the rest waits, up to a number."""

    def __init__(self, n_running: int, n_waiting: int) -> None:
        self._most = n_running + n_waiting
        self.n_open = 0
        """Requests that wait or run."""
        self._lock = threading.Lock()
        self.is_stopping = False
        """Whether `stop` was called."""
        self._threads, self._few_threads = (
            ThreadPoolExecutor(n, thread_name_prefix="codea1-request") for n in (n_running, max(1, n_running // 8))
        )

    async def run(self, work: Callable[[], _T], *, is_large: bool = False) -> _T:
        """Return what `work` returns. If the caller is cancelled before `work` has begun, it never begins.

        Args:
            work: runs in a thread, in this context.
            is_large: whether it reads much; then only an eighth as many run at the same time, since one thread reads.

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
        future: asyncio.Future[_T] = loop.create_future()
        threads = self._few_threads if is_large else self._threads
        threads.submit(copy_context().run, self._ran, work, is_given_up).add_done_callback(
            partial(_pass_on, loop, future)
        )
        try:
            return await future
        except asyncio.CancelledError:
            is_given_up.set()
            raise
        finally:
            del future, work  # a traceback would hold them until garbage is collected

    def stop(self) -> None:
        """Refuse all requests from now on, including those that wait; those that run go on. Idempotent."""
        self.is_stopping = True
        self._threads.shutdown(wait=False)
        self._few_threads.shutdown(wait=False)

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


def _pass_on(loop: asyncio.AbstractEventLoop, future: asyncio.Future[_T], done: Future[_T]) -> None:
    """Give a thread's result to the loop; unlike with `wrap_future`, a cancelled caller does not empty its place."""

    def deliver() -> None:
        if future.done():  # its caller was cancelled
            return
        error = done.exception()
        if error is None:
            future.set_result(done.result())
        else:
            future.set_exception(error.with_traceback(None) if isinstance(error, CodeA1Error) else error)

    with suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(deliver)
