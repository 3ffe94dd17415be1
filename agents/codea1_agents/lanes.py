"""Threads for what may block for ever: they end with the process, and are never waited for longer than one asks."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any


class Interrupted(Exception):
    """Somebody at the keyboard ended the run, seen from another thread than the main one."""


@dataclass(frozen=True, slots=True)
class _Call:
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


class Lane:
    """One thread, begun with its first call, in which calls are made one after the other."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    async def call(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Return what the function returns, or raise what it raises; cancelling this lets the call itself go on."""
        loop = asyncio.get_running_loop()
        call = _Call(function, arguments, loop, loop.create_future())
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        self._calls.put(call)
        return await call.future

    def close(self, wait_s: float) -> None:
        """Make no more calls; wait so long for the one under way."""
        with suppress(queue.Empty):
            while True:
                self._calls.get_nowait()
        self._calls.put(None)
        if self._thread is not None:
            self._thread.join(wait_s)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            result: object = None
            fault: Exception | None = None
            try:
                result = call.function(*call.arguments)
            except KeyboardInterrupt:
                fault = Interrupted()
            except Exception as error:  # noqa: BLE001  handed to whoever waits
                fault = error
            with suppress(RuntimeError):  # the loop has ended; nobody waits
                call.loop.call_soon_threadsafe(_settle, call.future, result, fault)


def _settle(future: asyncio.Future[Any], result: object, fault: Exception | None) -> None:
    if future.done():  # cancelled
        return
    if fault is None:
        future.set_result(result)
    else:
        future.set_exception(fault)
