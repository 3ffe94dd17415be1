"""Many games at once: while some wait for their agents, others are judged.

Theory of operation. One thread runs an event loop in which each game is a task; the sandbox is waited for in a few
threads more. The caller's thread only takes finished games out of a queue, so that Ctrl-C reaches it at once. Games of
the same problem never overlap and come in the order of their numbers. Entries of the Mistake Book belong to a problem,
so each game finds the book as it would if all games were played one after the other.
"""

from __future__ import annotations

import asyncio
import heapq
import queue
import threading
from collections.abc import Container, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from codea1_agents.concurrent_seats import ConcurrentSeat
from codea1_agents.games import EpisodeSeeds, Game, PlayedEpisode, Table
from codea1_agents.lanes import Interrupted
from codea1_env.code_a1_v0 import CODER, TESTER
from codea1_env.errors import AgentUnavailable
from codea1_env.problems import ProblemSet

_MAX_JUDGING = 32
"""Threads that wait for the sandbox: enough to keep the workers of a large machine busy."""

_PATIENCE_S = 10.0
"""How long the end of a run waits for agents that do not let themselves be cancelled."""


class Schedule:
    """Which episode begins next: the first one whose problem is not being played."""

    def __init__(self, n_problems: int, *, start_at: int, episodes: int, done: Container[int] = ()) -> None:
        """Plan the episodes from `start_at` to `episodes - 1` but for those that are done; number k plays problem k."""
        self._n_problems, self._episodes, self._done = n_problems, episodes, done
        self._ready: list[int] = []
        for number in range(start_at, min(start_at + n_problems, episodes)):
            self._enter(number)

    def begun(self) -> int | None:
        """Take out and return the next episode; None: none can begin now."""
        return heapq.heappop(self._ready) if self._ready else None

    def over(self, number: int) -> None:
        """Take note that an episode is over: the next one of its problem may begin."""
        self._enter(number + self._n_problems)

    def _enter(self, number: int) -> None:
        while number < self._episodes and number in self._done:
            number += self._n_problems
        if number < self._episodes:
            heapq.heappush(self._ready, number)


class ConcurrentGames:
    """A run of games at several tables."""

    def __init__(
        self,
        problems: ProblemSet,
        schedule: Schedule,
        tables: Sequence[Table],
        seats: Mapping[str, ConcurrentSeat],
        run_seed: int,
    ) -> None:
        self._problems, self._schedule, self._seats, self._run_seed = problems, schedule, seats, run_seed
        self._tables, self._free = tables, list(tables)[::-1]
        self._judging = ThreadPoolExecutor(min(len(tables), _MAX_JUDGING), "judging")
        self._finished: queue.SimpleQueue[PlayedEpisode | BaseException | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="games", daemon=True)
        self._is_up = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._all: asyncio.Task[None] | None = None

    def played(self) -> Generator[PlayedEpisode, None, None]:
        """Yield games as they are finished; once. What is still being played when this is closed is given up.

        Raises:
            UserError: an agent failed.
            SandboxError: the sandbox cannot be used at all.
        """
        self._thread.start()
        try:
            while (found := self._finished.get()) is not None:
                if isinstance(found, Interrupted):
                    raise KeyboardInterrupt
                if isinstance(found, BaseException):
                    raise found
                yield found
        finally:
            self._stop()

    def _stop(self) -> None:
        for table in self._tables:
            table.sandbox.stop()
        self._is_up.wait(_PATIENCE_S)
        if self._loop is not None and self._all is not None:
            with suppress(RuntimeError):  # the loop has ended by itself
                self._loop.call_soon_threadsafe(self._all.cancel)
        self._thread.join(_PATIENCE_S)
        self._judging.shutdown(cancel_futures=True)

    def _run(self) -> None:
        try:
            asyncio.run(self._play_all())
        except asyncio.CancelledError:
            return
        except BaseException as error:  # noqa: BLE001  raised in the caller's thread
            self._finished.put(error)
            return
        self._finished.put(None)

    async def _play_all(self) -> None:
        self._loop, self._all = asyncio.get_running_loop(), asyncio.current_task()
        self._is_up.set()
        under_way: dict[asyncio.Task[PlayedEpisode], Table] = {}
        try:
            seeds = EpisodeSeeds.of_run(self._run_seed)
            await self._seats[CODER].open(seeds.coder)
            await self._seats[TESTER].open(seeds.tester)
            while self._begin(under_way):
                done, _ = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    self._free.append(under_way.pop(task))
                self._hand_over(done)
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)
            for seat in self._seats.values():
                await seat.end()

    def _hand_over(self, done: Iterable[asyncio.Task[PlayedEpisode]]) -> None:
        """Give finished games to the caller, also beside one that failed."""
        for task in sorted(done, key=lambda each: each.exception() is not None):
            game = task.result()  # raises what has happened
            self._schedule.over(game.record.episode)
            self._finished.put(game)

    def _begin(self, under_way: dict[asyncio.Task[PlayedEpisode], Table]) -> bool:
        """Begin as many games as there are free tables; return whether any is being played."""
        while self._free and (number := self._schedule.begun()) is not None:
            table = self._free.pop()
            under_way[asyncio.create_task(self._play(number, table))] = table
        return bool(under_way)

    async def _play(self, number: int, table: Table) -> PlayedEpisode:
        game = Game(table, number, self._problems[number % len(self._problems)], self._run_seed)
        await self._seats[CODER].begin(game, game.seeds.coder)
        await self._seats[TESTER].begin(game, game.seeds.tester)
        game.begin()
        while (turn := game.turn()) is not None:
            try:
                reply = await self._seats[turn.agent].ask(game, turn)
            except AgentUnavailable as error:
                game.answered(turn)
                game.give_up(turn, error)
            else:
                game.answered(turn)
                await asyncio.get_running_loop().run_in_executor(self._judging, game.take, reply)
        return game.played()
