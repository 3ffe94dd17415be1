"""The environments of a run: each plays one game after the other, in a thread of its own.

One lock lets a single thread at a time read replies and judge, because the environments share a referee, and because
CPython before 3.11.8 cannot parse in two threads (python/cpython#106905). It is released while a thread waits for the
sandbox, so many games are judged at once.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from codea1_env.agent.threads import CallThread, await_result
from codea1_env.errors import SandboxError
from codea1_env.sandbox import Closing, Guarantee, Job, JobReport, Sandbox

_T = TypeVar("_T")

_MAX_JUDGING = 32
"""Most threads that call the sandbox at once: enough to keep the workers of a large machine busy."""


class SharedLock:
    """A lock that threads take with `with`, and coroutines with `async with`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting = CallThread("waits for a lock")

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    async def __aenter__(self) -> None:
        taken = self._waiting.submit(self._lock.acquire)
        try:
            await await_result(taken)
        except asyncio.CancelledError:
            taken.add_done_callback(self._give_back)
            raise

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()

    def _give_back(self, taken: Future[bool]) -> None:
        if not taken.cancelled():
            self._lock.release()

    def end(self) -> None:
        """End the thread in which coroutines wait."""
        self._waiting.end()


class TimedSandbox(Closing):
    """The sandbox as the environments see it: measures the time that each thread waits for it."""

    def __init__(self, inner: Sandbox) -> None:
        self._inner = inner
        self._places = threading.BoundedSemaphore(_MAX_JUDGING)
        self.lock = SharedLock()
        """A thread holds it while it works in an environment, and releases it while it waits for the sandbox."""
        self.spent_s: defaultdict[int, float] = defaultdict(float)
        """By the identifier of a thread: seconds that it has waited for the sandbox so far."""
        self.has_ended = False
        """Once it is true, every call fails."""

    @property
    def name(self) -> str:
        """The sandbox's name."""
        return self._inner.name

    @property
    def guarantee(self) -> Guarantee:
        """The sandbox's guarantee."""
        return self._inner.guarantee

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        """Run all jobs. The calling thread must hold the lock; it is released meanwhile."""
        if self.has_ended:
            raise SandboxError("the run has ended")
        self.lock.__exit__()
        try:
            with self._places:
                start = time.perf_counter()
                try:
                    return self._inner.run(jobs)
                finally:
                    self.spent_s[threading.get_ident()] += time.perf_counter() - start
        finally:
            self.lock.__enter__()

    def close(self) -> None:
        """Close the sandbox itself."""
        self._inner.close()


class EnvSlot:
    """One environment, which plays one game after the other."""

    def __init__(self, number: int, environment: Any, sandbox: TimedSandbox) -> None:
        self.number, self.environment, self._sandbox = number, environment, sandbox
        self._thread = CallThread(f"environment {number}")
        self.judging_s = 0.0
        """Seconds that it has waited for the sandbox so far."""

    async def judge(self, function: Callable[..., _T], *arguments: object) -> _T:
        """Call a function of the environment in this slot's thread, while no other one reads replies or judges."""
        return await await_result(self._thread.submit(self._call_with_lock, function, *arguments))

    def end(self) -> Future[None]:
        """Make all judging fail at its next call of the sandbox; return a future of the end of this slot's thread."""
        self._sandbox.has_ended = True
        self._sandbox.lock.end()
        return self._thread.end()

    def _call_with_lock(self, function: Callable[..., _T], *arguments: object) -> _T:
        with self._sandbox.lock:
            value = function(*arguments)
        self.judging_s = self._sandbox.spent_s[threading.get_ident()]
        return value
