"""Other ways to wait for a sandbox than for all reports at once: as they come, and from asynchronous code."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from contextlib import closing
from typing import Protocol, runtime_checkable

from codea1_env.sandbox.interface import Finished, Job, JobReport, Sandbox

__all__ = ["Streams", "as_completed", "run_async", "stream"]


@runtime_checkable
class Streams(Protocol):
    """A back end that gives each report as soon as it is there."""

    def as_completed(self, jobs: Sequence[Job]) -> Iterator[Finished]:
        """Yield one report per job, in the order in which they are done; what is not waited for is cancelled."""


def as_completed(sandbox: Sandbox, jobs: Sequence[Job]) -> Generator[Finished]:
    """Yield one report per job, in the order in which they are done.

    Back ends that do not stream (`Streams`) give them in the order of the jobs, when all are done. Closing the
    iterator early cancels what is not done where the back end streams.

    Raises:
        SandboxError: the back end cannot be used at all.
    """
    if isinstance(sandbox, Streams):
        yield from sandbox.as_completed(jobs)
    else:
        yield from map(Finished, range(len(jobs)), sandbox.run(jobs))


async def run_async(sandbox: Sandbox, jobs: Sequence[Job]) -> list[JobReport]:
    """Run all jobs without blocking the event loop; reports in the order of the jobs.

    Raises:
        SandboxError: the back end cannot be used at all.
    """
    found = {finished.position: finished.report async for finished in stream(sandbox, jobs)}
    return [found[position] for position in range(len(jobs))]


async def stream(sandbox: Sandbox, jobs: Sequence[Job]) -> AsyncIterator[Finished]:
    """Yield one report per job, in the order in which they are done, without blocking the event loop.

    When it is left early, jobs under way are given up with the next report, and the others are not begun.

    Raises:
        SandboxError: the back end cannot be used at all.
    """
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[Finished] = asyncio.Queue()
    is_left = threading.Event()

    def listen() -> None:
        with closing(as_completed(sandbox, jobs)) as reports:
            for finished in reports:
                if is_left.is_set():
                    return
                loop.call_soon_threadsafe(arrived.put_nowait, finished)

    listening = asyncio.ensure_future(asyncio.to_thread(listen))
    try:
        for _ in jobs:
            getting = asyncio.ensure_future(arrived.get())
            await asyncio.wait({getting, listening}, return_when=asyncio.FIRST_COMPLETED)
            if not getting.done() and listening.done():
                listening.result()  # raises what has happened
            yield await getting
    finally:
        is_left.set()
        if listening.done():
            listening.exception()  # seen
