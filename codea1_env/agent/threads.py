"""Daemon threads in which agents run, so that neither Ctrl-C nor a time limit waits for a call that never returns.

`CallThread` makes one call after the other. `LoopThread` runs an event loop, so that one client of a model server
serves all threads and all other event loops. Python cannot end a thread: one that is stuck ends with its call, or with
the process.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, InvalidStateError, wait
from contextlib import suppress
from math import inf
from queue import SimpleQueue
from typing import Any, TypeVar

from codea1_env.errors import AgentUnavailable

_T = TypeVar("_T")

REPLY_TIMEOUT_S = 600.0
"""The default limit of one reply."""
CLOSE_TIMEOUT_S = 5.0
"""Seconds that the end of a run waits for agents that do not end by themselves."""
SIGNALS_S = 0.5
"""Longest time until a signal is handled that arrives just before a wait begins."""


def too_late(name: str, limit_s: float | None) -> AgentUnavailable:
    """Return the error of an agent whose call did not return in time."""
    return AgentUnavailable(f"{name} did not return within {limit_s:g} s (--reply-timeout)")


def wait_until_done(future: Future[Any], timeout_s: float | None) -> bool:
    """Wait for a future, and return whether it is done.

    It waits for short times: a signal that arrives just before a wait begins is handled only when the wait ends.
    """
    deadline = inf if timeout_s is None else time.monotonic() + timeout_s
    while not wait([future], max(0.0, min(SIGNALS_S, deadline - time.monotonic()))).done:
        if time.monotonic() >= deadline:
            return False
    return True


def ended_calls(calls: Iterable[Future[_T]]) -> Iterator[Future[_T]]:
    """Yield each call when it is done; it waits for short times, too."""
    left = set(calls)
    while left:
        done, left = wait(left, SIGNALS_S, FIRST_COMPLETED)
        yield from done


def as_future_of_loop(call: Future[_T]) -> asyncio.Future[_T]:
    """Return a call as a future of the running event loop. Cancelling it cancels the call.

    Nobody needs to look at its error: who awaited it may have been cancelled because another call failed first.
    """
    future = asyncio.wrap_future(call)
    future.add_done_callback(lambda done: done.cancelled() or done.exception())
    return future


class CallThread:
    """Makes calls in one daemon thread, which starts with the first call."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: SimpleQueue[_Call | None] | None = None

    def submit(self, function: Callable[..., _T], *arguments: object) -> Future[_T]:
        """Begin a call after those before it. Cancelling the future prevents a call that has not begun."""
        done: Future[_T] = Future()
        if self._calls is None:
            self._calls = SimpleQueue()
            threading.Thread(target=_serve_calls, args=(self._calls,), name=self._name, daemon=True).start()
        self._calls.put((done, function, arguments))
        return done

    def end(self) -> Future[None]:
        """End the thread after its last call so far, and return a future of that. A later call starts another one."""
        ended: Future[None] = Future()
        if self._calls is None:
            ended.set_result(None)
        else:
            ended = self.submit(lambda: None)
            self._calls.put(None)
            self._calls = None
        return ended


_Call = tuple[Future[Any], Callable[..., Any], tuple[object, ...]]


def _serve_calls(calls: SimpleQueue[_Call | None]) -> None:
    while (call := calls.get()) is not None:
        done, function, arguments = call
        if done.set_running_or_notify_cancel():
            try:
                done.set_result(function(*arguments))
            except BaseException as error:  # noqa: BLE001  raised where the result is taken
                done.set_exception(error)
        del call, done, function, arguments  # while it waits, the thread keeps nothing alive


class LoopThread:
    """Runs functions in an event loop in a daemon thread, which starts with the first one, and awaits what they return.

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

    def submit(self, function: Callable[..., Any], *arguments: object) -> Future[Any]:
        """Begin a call. Cancelling the future cancels the coroutine, and does not wait for it."""
        done: Future[Any] = Future()
        call = asyncio.run_coroutine_threadsafe(_outcome(done, function, *arguments), self._start())
        done.add_done_callback(lambda done: done.cancelled() and call.cancel())
        return done

    def run(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Return what a call returns; Ctrl-C cancels it and does not wait for the cancellation."""
        done = self.submit(function, *arguments)
        try:
            wait_until_done(done, None)
            return done.result()
        except BaseException:
            done.cancel()
            raise

    def close(self, last: Callable[[], object] | None = None, *, timeout_s: float | None = None) -> None:
        """Do what `begin_close` begins. A thread that takes longer than the limit is left to end with the process."""
        thread, ended = self._thread, self.begin_close(last)
        # The garbage collector may call this in any thread, that of the loop included.
        if thread is not threading.current_thread() and wait([ended], timeout_s).done:
            if thread is not None:
                thread.join()
            ended.result()

    def begin_close(self, last: Callable[[], object] | None = None) -> Future[Any]:
        """Begin to cancel what runs, to make a last call, and to end the thread; return the outcome of the call."""
        ended: Future[Any] = Future()
        if last is None and not self._is_running:
            ended.set_result(None)
            return ended
        loop = self._start()
        with self._lock:
            self._loop = self._thread = None
        self._finalizer.detach()
        asyncio.run_coroutine_threadsafe(_end(loop, ended, last or (lambda: None)), loop)
        return ended

    @property
    def _is_running(self) -> bool:
        return self._loop is not None and self._process_id == os.getpid()  # a forked process has no threads

    def _start(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or not self._is_running:
                self._loop, self._process_id = asyncio.new_event_loop(), os.getpid()
                self._thread = threading.Thread(target=_serve_loop, args=(self._loop,), name=self._name, daemon=True)
                self._thread.start()
                self._finalizer = weakref.finalize(self, _stop, self._loop)
                self._finalizer.atexit = False
            return self._loop


def _serve_loop(loop: asyncio.AbstractEventLoop) -> None:
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


async def _end(loop: asyncio.AbstractEventLoop, ended: Future[Any], last: Callable[[], object]) -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await _outcome(ended, last)
    loop.call_soon(loop.stop)


async def _outcome(done: Future[Any], function: Callable[..., Any], *arguments: object) -> None:
    """Make a call, await what it returns, and put the result or the error into a future.

    An exit or a CancelledError that the call itself raises so reaches who waits, and does not end the loop or the wait.
    """
    try:
        value = function(*arguments)
        result = await value if inspect.isawaitable(value) else value
    except BaseException as error:  # noqa: BLE001  raised where the result is taken
        with suppress(InvalidStateError):  # it was cancelled
            done.set_exception(error)
    else:
        with suppress(InvalidStateError):
            done.set_result(result)
