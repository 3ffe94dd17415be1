"""An event loop in its own thread, so that one HTTP client serves all threads and all other event loops."""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, wait
from contextlib import suppress
from math import inf
from typing import Any, TypeVar

from codea1_env.errors import AgentUnavailable

T = TypeVar("T")

CLOSE_TIMEOUT_S = 5.0
"""Seconds that the end of a run waits for agents that do not end by themselves."""

_SIGNALS_S = 0.5
"""Longest time until a signal is handled that arrives just before a wait begins."""
_BLOCKED_S = 1.0
"""A loop that runs nothing for so many seconds is blocked."""


def too_late(name: str, limit_s: float | None) -> AgentUnavailable:
    """Return the error of an agent whose call did not return in time."""
    return AgentUnavailable(f"{name} did not return within {limit_s:g} s (--reply-timeout)")


def done_within(future: Future[Any], timeout_s: float | None) -> bool:
    """Wait for a future, and return whether it is done.

    It waits for short times: a signal that arrives just before a wait begins is handled only when the wait ends.
    """
    deadline = inf if timeout_s is None else time.monotonic() + timeout_s
    while not wait([future], max(0.0, min(_SIGNALS_S, deadline - time.monotonic()))).done:
        if time.monotonic() >= deadline:
            return False
    return True


class LoopThread:
    """Runs coroutines in a thread that starts with the first one.

    It starts again after `close`, in a forked process, and after unpickling.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process_id = os.getpid()

    def __reduce__(self) -> tuple[type[LoopThread], tuple[str]]:
        return type(self), (self._name,)

    def run(self, awaitable: Awaitable[T], *, timeout_s: float | None = None) -> T:
        """Return the result of an awaitable; Ctrl-C cancels it and does not wait for the cancellation.

        Raises:
            AgentUnavailable: it takes longer than `timeout_s` seconds; it is cancelled, or left alone if it blocks.
        """
        future = asyncio.run_coroutine_threadsafe(_outcome(awaitable), self._started())
        try:
            if not done_within(future, timeout_s):
                future.cancel()
                self._leave_if_blocked()
                raise too_late(self._name, timeout_s)
            return future.result().result()
        except BaseException:
            future.cancel()
            raise

    async def join(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Await the coroutine from another event loop; cancelling this call cancels the coroutine."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._started()))

    def close(self, last: Awaitable[object] | None = None, *, timeout_s: float | None = None) -> None:
        """Cancel what runs, run `last`, and end the thread: `begin_close`, then its wait."""
        self.begin_close(last, timeout_s=timeout_s)()

    def begin_close(
        self, last: Awaitable[object] | None = None, *, timeout_s: float | None = None
    ) -> Callable[[], None]:
        """Begin to cancel what runs, to run `last`, and to end the thread; return a function that waits for all of it.

        A thread that takes longer than `timeout_s` seconds from now is not waited for; it ends with the process.
        """
        loop = self._started() if last is not None else self._loop
        with self._lock:
            if self._was_forked():
                return lambda: None
            thread, self._loop, self._thread = self._thread, None, None
        if loop is None or thread is None:
            return lambda: None
        self._finalizer.detach()
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        ended = asyncio.run_coroutine_threadsafe(_end(loop, last), loop)

        def waiting() -> None:
            left_s = None if deadline is None else max(0.0, deadline - time.monotonic())
            # The garbage collector may call this in any thread, this one included.
            if thread is not threading.current_thread() and wait([ended], left_s).done:
                thread.join()
                ended.result().result()

        return waiting

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._was_forked():
                self._loop, self._process_id = None, os.getpid()
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name=self._name, daemon=True)
                self._thread.start()
                self._finalizer = weakref.finalize(self, _stop, self._loop)
                self._finalizer.atexit = False
            return self._loop

    def _leave_if_blocked(self) -> None:
        """Let the next call start another loop if this one does not run, because a coroutine in it never awaits."""
        loop = self._started()
        if not wait([asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop)], _BLOCKED_S).done:
            with self._lock:
                if self._loop is loop:
                    self._loop = self._thread = None

    def _was_forked(self) -> bool:
        return self._process_id != os.getpid()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Run until the loop is stopped; an exit raised in a task ends the caller that awaits the task, and not the
    loop."""
    while True:
        try:
            loop.run_forever()
        except (KeyboardInterrupt, SystemExit):
            continue
        loop.close()
        return


def _stop(loop: asyncio.AbstractEventLoop) -> None:
    with suppress(RuntimeError):  # it is closed
        loop.call_soon_threadsafe(loop.stop)


async def _end(loop: asyncio.AbstractEventLoop, last: Awaitable[object] | None) -> Future[object]:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    try:
        return await _outcome(last or asyncio.sleep(0))
    finally:
        loop.call_soon(loop.stop)


async def _outcome(awaitable: Awaitable[T]) -> Future[T]:
    """Return the awaitable's result or its error in a future, so that an exit ends the caller and not the loop.

    A CancelledError that the awaitable raises by itself keeps its traceback; a real cancellation passes.
    """
    done = Future[T]()
    try:
        done.set_result(await awaitable)
    except (KeyboardInterrupt, SystemExit) as error:
        done.set_exception(error)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        done.set_exception(error)
    return done
