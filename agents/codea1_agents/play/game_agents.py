"""Connects one agent to all games of a run; each game is played in one thread."""

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

from codea1_agents.play.call_thread import REPLY_TIMEOUT_S, CallThread
from codea1_agents.play.named_agent import NamedAgent, Reply
from codea1_agents.play.players import Copies
from codea1_env.agent.event_loop import CLOSE_TIMEOUT_S, LoopThread
from codea1_env.errors import AgentUnavailable, UserError
from codea1_env.rounds.rounds import Turn

_CAN_PARSE_IN_THREADS = sys.version_info >= (3, 11, 8)
"""Before 3.11.8, the parser of CPython crashes in two threads (python/cpython#106905)."""

_JOINING_S = 0.002
"""How long a batch waits for turns of other games."""


@dataclass(frozen=True, slots=True)
class CallTerms:
    """How the games of a run call their agents."""

    lock: threading.Lock
    """Held in every call of an agent that might parse at the same time as another thread."""
    reply_timeout_s: float | None = REPLY_TIMEOUT_S
    """Seconds after which a call is given up; None: never."""


class GameAgent:
    """Calls the agent's `act`, for each environment in a thread of its own, or in the game's thread without a limit."""

    def __init__(
        self, agent: NamedAgent, terms: CallTerms, copies: Copies | None = None, *, resets_each_game: bool = False
    ) -> None:
        """Connect an agent.

        Args:
            agent: the agent.
            terms: of the run; a person at the terminal has no limit.
            copies: makes a copy of the agent for every environment but the first; None if there is only one.
            resets_each_game: whether the agent is reset before each game, else once for the run.
        """
        self.agent = agent
        self._lock, self._copies, self._resets_each_game = terms.lock, copies, resets_each_game
        self._limit_s = None if _declares(agent, "interactive") else terms.reply_timeout_s
        self._call_lock: AbstractContextManager[Any] = terms.lock
        if _declares(agent, "thread_safe"):
            self._call_lock = nullcontext()
        elif _CAN_PARSE_IN_THREADS:
            self._call_lock = threading.Lock()
        self._unused = [agent]
        self._by_slot: dict[int, NamedAgent] = {}
        self._threads: dict[int, CallThread] = {}

    def open(self, run_seed: int) -> None:
        """Begin the run: reset the agent unless each game does.

        Raises:
            AgentUnavailable: it did not return in time.
        """
        if not self._resets_each_game:
            self._thread(0).call(self.agent.reset, run_seed, "reset()")

    def begin(self, slot: int, seed: int, where: str) -> None:
        """Begin a game in an environment slot: reset the agent if each game does.

        Raises:
            AgentUnavailable: the agent has no reply for this game.
            UserError: the agent failed.
        """
        if self._resets_each_game:
            with self._lock:
                if slot not in self._by_slot:
                    self._by_slot[slot] = self._unused.pop() if self._unused else self._copy()
                self._thread(slot).call(self._by_slot[slot].reset, seed, where)

    def reply(self, turn: Turn, slot: int, where: str) -> str:
        """Return the reply to a turn.

        Raises:
            AgentUnavailable: the agent has no reply for this game, or it did not come in time.
            UserError: the agent failed.
        """
        with self._call_lock:
            return self._thread(slot).call(self._by_slot.get(slot, self.agent).reply, turn, where)

    def stop(self) -> None:
        """Begin to cancel calls in progress, without waiting. The run stops all agents first and then closes each."""

    def close(self) -> None:
        """End the run: close the agent in the threads that called it."""
        for slot, thread in self._threads.items():
            thread.close(self._by_slot.get(slot, self.agent).close)

    def _thread(self, slot: int) -> CallThread:
        return self._threads.setdefault(slot, CallThread(self.agent.name, self._limit_s))

    def _copy(self) -> NamedAgent:
        assert self._copies is not None
        return NamedAgent(self._copies.another(), self.agent.name)


def _declares(agent: NamedAgent, name: str) -> bool:
    return getattr(agent.inner, name, False) is True


def sequential_agent(agent: NamedAgent, terms: CallTerms, _: Copies | None) -> GameAgent:
    """Return the connection for an agent that plays one game after the other."""
    is_async = callable(getattr(agent.inner, "areset", None))
    resets_each_game = not _declares(agent, "stateless")
    return (_AsyncAgent if is_async else GameAgent)(agent, terms, resets_each_game=resets_each_game)


def concurrent_agent(agent: NamedAgent, terms: CallTerms, copies: Copies | None) -> GameAgent:
    """Return the connection for an agent that plays many games at once: by `aact`, else `act_batch`, else `act`.

    Raises:
        UserError: the agent cannot play several games at once.
    """

    def has(name: str) -> bool:
        return callable(getattr(agent.inner, name, None))

    if _declares(agent, "interactive"):
        raise UserError(f"{agent.name} plays one game at a time: leave concurrency at 1")
    if has("aact"):
        return _AsyncAgent(agent, terms)
    if has("act_batch"):
        return _BatchAgent(agent, terms)
    if copies is not None and not _declares(agent, "stateless"):
        return GameAgent(agent, terms, copies, resets_each_game=True)
    if has("reset") and not (_declares(agent, "stateless") or _declares(agent, "thread_safe")):
        raise UserError(
            f"{agent.name} is one object that is reset before each game, so it cannot play several at once: pass its "
            "class, give it act_batch or aact, or set stateless = True if its replies depend on seed, observation and "
            "info alone"
        )
    return GameAgent(agent, terms)


class _AsyncAgent(GameAgent):
    """Calls `aact`: each turn is a task in one event loop."""

    def __init__(self, agent: NamedAgent, terms: CallTerms, *, resets_each_game: bool = False) -> None:
        super().__init__(agent, terms, resets_each_game=resets_each_game)
        self._loop = LoopThread(agent.name)
        self._ended: Callable[[], None] | None = None

    def open(self, run_seed: int) -> None:
        if not self._resets_each_game:
            self._reset(run_seed, "reset()")

    def begin(self, slot: int, seed: int, where: str) -> None:
        if self._resets_each_game:
            self._reset(seed, where)

    def reply(self, turn: Turn, slot: int, where: str) -> str:
        return self.agent.require_text(self._awaited(where, self.agent.inner.aact, turn.observation, turn.info), where)

    def stop(self) -> None:
        if self._ended is None:
            aclose = getattr(self.agent.inner, "aclose", None)
            self.agent.is_closed = callable(aclose)
            self._ended = self._loop.begin_close(aclose() if callable(aclose) else None, timeout_s=CLOSE_TIMEOUT_S)

    def close(self) -> None:
        self.stop()
        assert self._ended is not None
        with self.agent.naming_errors("close()"):
            self._ended()
        super().close()

    def _reset(self, seed: int, where: str) -> None:
        areset = getattr(self.agent.inner, "areset", None)
        if callable(areset):
            self._awaited(where, areset, seed)
        else:
            self._thread(0).call(self.agent.reset, seed, where)

    def _awaited(self, where: str, function: Callable[..., Any], *arguments: object) -> Any:
        with self.agent.naming_errors(where):
            return self._loop.run(function(*arguments), timeout_s=self._limit_s)


@dataclass(frozen=True, slots=True)
class _PendingTurn:
    turn: Turn
    where: str
    reply: Future[Reply] = field(default_factory=Future)


class _BatchAgent(GameAgent):
    """Calls `act_batch` in a thread of its own, with all turns that wait when the agent is free."""

    def __init__(self, agent: NamedAgent, terms: CallTerms) -> None:
        super().__init__(agent, terms)
        self._waiting: queue.SimpleQueue[_PendingTurn] = queue.SimpleQueue()
        self._deadline: float | None = None
        self._worker = threading.Thread(target=self._work, name=agent.name, daemon=True)

    def open(self, run_seed: int) -> None:
        super().open(run_seed)
        self._worker.start()

    def reply(self, turn: Turn, slot: int, where: str) -> str:
        pending = _PendingTurn(turn, where)
        self._waiting.put(pending)
        reply = pending.reply.result()
        if isinstance(reply, AgentUnavailable):
            raise AgentUnavailable(str(reply))  # a new error for each game, since raising one adds to its traceback
        return reply

    def stop(self) -> None:
        if self._deadline is None:
            self._deadline = time.monotonic() + CLOSE_TIMEOUT_S
            self._waiting.put(_PendingTurn(Turn({}, {}), ""))

    def close(self) -> None:
        self.stop()
        if self._worker.is_alive() and self._deadline is not None:
            self._worker.join(max(0.0, self._deadline - time.monotonic()))
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
            self._reply_to(batch)

    def _reply_to(self, batch: list[_PendingTurn]) -> None:
        try:
            turns, wheres = [each.turn for each in batch], [each.where for each in batch]
            replies = self._thread(0).call(self.agent.batch, turns, wheres, n_replies=len(batch))
        except AgentUnavailable as error:
            replies = [error] * len(batch)
        except BaseException as error:  # noqa: BLE001  raised in the games' threads
            for each in batch:
                each.reply.set_exception(error)
            return
        for each, reply in zip(batch, replies, strict=True):
            with suppress(InvalidStateError):
                each.reply.set_result(reply)
