"""Many games at once: while some wait for their agents, others are judged.

Theory of operation. Each environment has a thread, in which one game is played after the other, as without concurrency.
One lock lets a single thread at a time read replies and judge; a game that waits for the sandbox or for its agent does
not hold it. (CPython before 3.11.8 cannot parse in two threads, python/cpython#106905: there an agent with `act` that
does not say it is `thread_safe` holds it, too.) The caller's thread only takes finished games out of a queue, so that
Ctrl-C reaches it at once, and the end of a run waits no longer than `CLOSE_TIMEOUT_S` for threads. Games of the same
problem never overlap and come in the order of their numbers. Entries of the Mistake Book belong to a problem, so each
game finds the book as it would if all games were played one after the other.
"""

from __future__ import annotations

import heapq
import queue
import threading
import time
from collections.abc import Callable, Container, Generator, Mapping, Sequence
from contextlib import ExitStack

from codea1_agents.play.game_agents import GameAgent
from codea1_agents.play.games import PlayedEpisode, Table
from codea1_env.agent.event_loop import CLOSE_TIMEOUT_S


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


def one_by_one(
    play: Callable[[int, Table], PlayedEpisode], schedule: Schedule, table: Table
) -> Generator[PlayedEpisode, None, None]:
    """Yield one game after the other, played in the caller's thread."""
    while (number := schedule.begun()) is not None:
        yield play(number, table)
        schedule.over(number)


class ConcurrentGames:
    """A run of games in several environments."""

    def __init__(
        self,
        play: Callable[[int, Table], PlayedEpisode],
        schedule: Schedule,
        tables: Sequence[Table],
        agents: Mapping[str, GameAgent],
    ) -> None:
        self._play, self._schedule, self._tables, self._agents = play, schedule, tables, agents
        self._planning = threading.Lock()
        self._finished: queue.SimpleQueue[PlayedEpisode | BaseException | None] = queue.SimpleQueue()

    def played(self) -> Generator[PlayedEpisode, None, None]:
        """Yield games as they are finished; once. What is still being played when this is closed is given up.

        Raises:
            UserError: an agent failed.
            SandboxError: the sandbox cannot be used at all.
        """
        threads = [threading.Thread(target=self._work, args=(table,), daemon=True) for table in self._tables]
        with ExitStack() as stack:
            stack.callback(_join, threads)
            for agent in self._agents.values():
                stack.callback(agent.stop)
            stack.callback(self._tables[0].sandbox.stop)
            for thread in threads:
                thread.start()
            for _ in threads:
                while (found := self._finished.get()) is not None:
                    if isinstance(found, BaseException):
                        raise found
                    yield found

    def _work(self, table: Table) -> None:
        """Play until nothing can begin: what becomes ready later is begun by the thread that has made it ready."""
        try:
            with self._planning:
                number = self._schedule.begun()
            while number is not None:
                game = self._play(number, table)
                self._finished.put(game)
                with self._planning:
                    self._schedule.over(number)
                    number = self._schedule.begun()
        except BaseException as error:  # noqa: BLE001  raised in the caller's thread
            self._finished.put(error)
        else:
            self._finished.put(None)


def _join(threads: Sequence[threading.Thread]) -> None:
    deadline = time.monotonic() + CLOSE_TIMEOUT_S
    for thread in threads:
        if thread.ident is not None:  # it has been started
            thread.join(max(0.0, deadline - time.monotonic()))
