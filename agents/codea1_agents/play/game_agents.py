"""How one agent serves the games of a run, each of which is played in one thread."""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

from codea1_agents.play.asking import Asker, Reply
from codea1_agents.play.players import Copies
from codea1_env.agent.event_loop import CLOSE_TIMEOUT_S, LoopThread
from codea1_env.errors import AgentUnavailable, UserError
from codea1_env.rounds.rounds import Turn

_CAN_PARSE_IN_THREADS = sys.version_info >= (3, 11, 8)
"""Before, the parser of CPython crashes in two threads (python/cpython#106905)."""

_JOINING_S = 0.002
"""How long a batch waits for turns of games that are as far as the first."""


class GameAgent:
    """Asks the agent by `act`, in the game's thread."""

    def __init__(
        self, asker: Asker, lock: threading.Lock, copies: Copies | None = None, *, resets_each_game: bool = False
    ) -> None:
        """Take an agent.

        Args:
            asker: the agent.
            lock: of the run; held in every call of an agent that may parse while somebody else does.
            copies: of which each environment but the first gets one, if there are several.
            resets_each_game: before each game, else once for the run.
        """
        self.asker = asker
        self._lock, self._copies, self._resets_each_game = lock, copies, resets_each_game
        self._asking: AbstractContextManager[Any] = lock
        if getattr(asker.agent, "thread_safe", False) is True:
            self._asking = nullcontext()
        elif _CAN_PARSE_IN_THREADS:
            self._asking = threading.Lock()
        self._unused = [asker]
        self._by_table: dict[int, Asker] = {}

    def open(self, run_seed: int) -> None:
        """Begin the run."""
        if not self._resets_each_game:
            self.asker.reset(run_seed, "reset()")

    def begin(self, table: int, seed: int, where: str) -> None:
        """Begin a game."""
        if self._resets_each_game:
            with self._lock:
                if table not in self._by_table:
                    self._by_table[table] = self._unused.pop() if self._unused else self._copy()
                self._by_table[table].reset(seed, where)

    def reply(self, turn: Turn, table: int, where: str) -> str:
        """Return the reply.

        Raises:
            AgentUnavailable: there is none, for this game.
            UserError: the agent failed.
        """
        with self._asking:
            return self._by_table.get(table, self.asker).reply(turn, where)

    def stop(self) -> None:
        """Begin to cancel what is under way, and to end; so all agents do before any is waited for."""

    def close(self) -> None:
        """End the run."""
        for asker in self._by_table.values():
            asker.close()

    def _copy(self) -> Asker:
        assert self._copies is not None
        return Asker(self._copies.another(), self.asker.name)


def alone(asker: Asker, lock: threading.Lock, _: Copies | None) -> GameAgent:
    """Return the way in which an agent serves one game after the other."""
    is_async = callable(getattr(asker.agent, "areset", None))
    resets_each_game = getattr(asker.agent, "stateless", False) is not True
    return (_AsyncAgent if is_async else GameAgent)(asker, lock, resets_each_game=resets_each_game)


def concurrent_agent(asker: Asker, lock: threading.Lock, copies: Copies | None) -> GameAgent:
    """Return the way in which an agent serves many games at once: `aact`, else `act_batch`, else `act`.

    Raises:
        UserError: it cannot.
    """

    def has(name: str) -> bool:
        return callable(getattr(asker.agent, name, None))

    def says(name: str) -> bool:
        return getattr(asker.agent, name, False) is True

    if says("interactive"):
        raise UserError(f"{asker.name} plays one game at a time: leave concurrency at 1")
    if has("aact"):
        return _AsyncAgent(asker, lock)
    if has("act_batch"):
        return _BatchAgent(asker, lock)
    if copies is not None and not says("stateless"):
        return GameAgent(asker, lock, copies, resets_each_game=True)
    if has("reset") and not (says("stateless") or says("thread_safe")):
        raise UserError(
            f"{asker.name} is one object that is reset before each game, so it cannot play several at once: pass its "
            "class, give it act_batch or aact, or set stateless = True if its replies depend on seed, observation and "
            "info alone"
        )
    return GameAgent(asker, lock)


class _AsyncAgent(GameAgent):
    """Each turn is a task in one event loop."""

    def __init__(self, asker: Asker, lock: threading.Lock, *, resets_each_game: bool = False) -> None:
        super().__init__(asker, lock, resets_each_game=resets_each_game)
        self._loop = LoopThread(asker.name)
        self._ended: Callable[[], None] | None = None

    def open(self, run_seed: int) -> None:
        if not self._resets_each_game:
            self._reset(run_seed, "reset()")

    def begin(self, table: int, seed: int, where: str) -> None:
        if self._resets_each_game:
            self._reset(seed, where)

    def reply(self, turn: Turn, table: int, where: str) -> str:
        return self.asker.text(self._awaited(where, self.asker.agent.aact, turn.observation, turn.info), where)

    def stop(self) -> None:
        if self._ended is None:
            aclose = getattr(self.asker.agent, "aclose", None)
            self.asker.is_closed = callable(aclose)
            self._ended = self._loop.begin_close(aclose() if callable(aclose) else None, timeout_s=CLOSE_TIMEOUT_S)

    def close(self) -> None:
        self.stop()
        assert self._ended is not None
        with self.asker.blamed("close()"):
            self._ended()

    def _reset(self, seed: int, where: str) -> None:
        areset = getattr(self.asker.agent, "areset", None)
        if callable(areset):
            self._awaited(where, areset, seed)
        else:
            self.asker.reset(seed, where)

    def _awaited(self, where: str, function: Callable[..., Any], *arguments: object) -> Any:
        with self.asker.blamed(where):
            return self._loop.run(function(*arguments))


@dataclass(frozen=True, slots=True)
class _Question:
    turn: Turn
    where: str
    reply: Future[Reply] = field(default_factory=Future)


class _BatchAgent(GameAgent):
    """All turns that wait when the agent is free go to it together, in a thread of its own."""

    def __init__(self, asker: Asker, lock: threading.Lock) -> None:
        super().__init__(asker, lock)
        self._waiting: queue.SimpleQueue[_Question] = queue.SimpleQueue()
        self._deadline: float | None = None
        self._thread = threading.Thread(target=self._work, name=asker.name, daemon=True)

    def open(self, run_seed: int) -> None:
        super().open(run_seed)
        self._thread.start()

    def reply(self, turn: Turn, table: int, where: str) -> str:
        question = _Question(turn, where)
        self._waiting.put(question)
        reply = question.reply.result()
        if isinstance(reply, AgentUnavailable):
            raise AgentUnavailable(str(reply))  # an error of its own, since raising one adds to its traceback
        return reply

    def stop(self) -> None:
        if self._deadline is None:
            self._deadline = time.monotonic() + CLOSE_TIMEOUT_S
            self._waiting.put(_Question(Turn({}, {}), ""))

    def close(self) -> None:
        self.stop()
        if self._thread.is_alive() and self._deadline is not None:
            self._thread.join(max(0.0, self._deadline - time.monotonic()))
        super().close()

    def _work(self) -> None:
        while True:
            batch = [self._waiting.get()]
            time.sleep(_JOINING_S)
            while not self._waiting.empty():
                batch.append(self._waiting.get())
            if self._deadline is not None:
                for each in batch:
                    each.reply.cancel()
                return
            self._answer(batch)

    def _answer(self, batch: list[_Question]) -> None:
        try:
            replies = self.asker.batch([each.turn for each in batch], [each.where for each in batch])
        except BaseException as error:  # noqa: BLE001  raised in the games' threads
            for each in batch:
                each.reply.set_exception(error)
            return
        for each, reply in zip(batch, replies, strict=True):
            with suppress(InvalidStateError):
                each.reply.set_result(reply)
