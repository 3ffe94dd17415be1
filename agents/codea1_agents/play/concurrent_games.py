"""Plays many games at once: while some wait for their agents, others are judged.

Theory of operation. Each environment has a thread, which plays one game after the other. One lock lets a single thread
at a time read replies and judge; a game that waits for the sandbox or for its agent does not hold the lock. (CPython
before 3.11.8 cannot parse in two threads, python/cpython#106905: there the lock is also held while an agent with `act`
replies, unless the agent declares `thread_safe`.) The caller's thread only takes finished games out of a queue, so
Ctrl-C reaches it at once. The end of a run waits at most `CLOSE_TIMEOUT_S` for threads. Games of the same problem never
overlap and are played in the order of their numbers. Each entry of the Mistake Book belongs to one problem, so each
game finds the book as if all games were played one after the other.
"""

from __future__ import annotations

import heapq
import queue
import threading
import time
from collections.abc import Callable, Container, Generator, Mapping, Sequence
from contextlib import ExitStack

from codea1_agents.play.game_agents import GameAgent
from codea1_agents.play.games import EnvSlot, PlayedEpisode
from codea1_env.agent.event_loop import CLOSE_TIMEOUT_S


class Schedule:
    """Decides which episode begins next: the first one whose problem is not being played."""

    def __init__(self, n_problems: int, *, start_at: int, episodes: int, done: Container[int] = ()) -> None:
        """Plan the episodes `start_at` to `episodes - 1` without those that are done; number k plays problem k."""
        self._n_problems, self._episodes, self._done = n_problems, episodes, done
        self._ready: list[int] = []
        for number in range(start_at, min(start_at + n_problems, episodes)):
            self._push(number)

    def begin_next(self) -> int | None:
        """Remove and return the next episode; None if none can begin now."""
        return heapq.heappop(self._ready) if self._ready else None

    def finish(self, number: int) -> None:
        """Mark an episode as finished: the next one of its problem may begin."""
        self._push(number + self._n_problems)

    def _push(self, number: int) -> None:
        while number < self._episodes and number in self._done:
            number += self._n_problems
        if number < self._episodes:
            heapq.heappush(self._ready, number)


def one_by_one(
    play: Callable[[int, EnvSlot], PlayedEpisode], schedule: Schedule, slot: EnvSlot
) -> Generator[PlayedEpisode, None, None]:
    """Play one game after the other in the caller's thread and yield each."""
    while (number := schedule.begin_next()) is not None:
        yield play(number, slot)
        schedule.finish(number)


class ConcurrentGames:
    """A run of games in several environments."""

    def __init__(
        self,
        play: Callable[[int, EnvSlot], PlayedEpisode],
        schedule: Schedule,
        slots: Sequence[EnvSlot],
        agents: Mapping[str, GameAgent],
    ) -> None:
        self._play, self._schedule, self._env_slots, self._agents = play, schedule, slots, agents
        self._planning = threading.Lock()
        self._finished: queue.SimpleQueue[PlayedEpisode | BaseException | None] = queue.SimpleQueue()

    def played(self) -> Generator[PlayedEpisode, None, None]:
        """Yield games as they finish. Call it once. Closing the generator abandons the games in progress.

        Raises:
            UserError: an agent failed.
            SandboxError: the sandbox cannot be used at all.
        """
        threads = [threading.Thread(target=self._work, args=(slot,), daemon=True) for slot in self._env_slots]
        with ExitStack() as stack:
            stack.callback(_join, threads)
            for agent in self._agents.values():
                stack.callback(agent.stop)
            stack.callback(self._env_slots[0].sandbox.stop)
            for thread in threads:
                thread.start()
            for _ in threads:
                while (found := self._finished.get()) is not None:
                    if isinstance(found, BaseException):
                        raise found
                    yield found

    def _work(self, slot: EnvSlot) -> None:
        """Play until no episode can begin. The thread that makes a later episode ready also begins it."""
        try:
            with self._planning:
                number = self._schedule.begin_next()
            while number is not None:
                game = self._play(number, slot)
                self._finished.put(game)
                with self._planning:
                    self._schedule.finish(number)
                    number = self._schedule.begin_next()
        except BaseException as error:  # noqa: BLE001  raised in the caller's thread
            self._finished.put(error)
        else:
            self._finished.put(None)


def _join(threads: Sequence[threading.Thread]) -> None:
    deadline = time.monotonic() + CLOSE_TIMEOUT_S
    for thread in threads:
        if thread.ident is not None:  # it was started
            thread.join(max(0.0, deadline - time.monotonic()))
