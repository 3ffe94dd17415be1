"""An event loop in a thread of its own, so that one HTTP client serves every thread and every other loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs coroutines; starts with the first one, and again after `close`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return what the coroutine returns; Ctrl-C meanwhile cancels it."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._started())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def join(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Await the coroutine from another event loop; cancelling this cancels it."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._started()))

    def close(self, last: Coroutine[Any, Any, object] | None = None, *, patience_s: float | None = None) -> None:
        """Cancel what still runs, run `last`, and end the thread; without a thread, nothing.

        Raises:
            TimeoutError: that took longer than `patience_s` seconds; the thread is left to the process's end.
        """
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None:
            if last is not None:
                last.close()
            return
        ended = asyncio.run_coroutine_threadsafe(_end(loop, last), loop)
        if thread is not threading.current_thread():  # garbage may be collected in any thread
            ended.result(patience_s)
            thread.join()
            loop.close()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
                self._thread.start()
            return self._loop


async def _end(loop: asyncio.AbstractEventLoop, last: Coroutine[Any, Any, object] | None) -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    try:
        if last is not None:
            await last
    finally:
        loop.call_soon(loop.stop)
