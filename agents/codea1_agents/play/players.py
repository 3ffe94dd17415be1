"""The two agents of a run, and how the games in progress call them.

Every call is made in a daemon thread and awaited, so a call that never returns keeps neither other games nor the end of
a run: after the limit, or at Ctrl-C, its thread is given up. The methods of an agent decide how it is called:
docs/agents.md has the table.
"""

from __future__ import annotations

import asyncio
import inspect
import signal
import sys
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field, fields, is_dataclass
from math import inf
from typing import Any, TypeVar

from codea1_agents.interrupts import handled_signals
from codea1_agents.play.games import RunSettings
from codea1_agents.play.named_agent import NamedAgent, Reply
from codea1_env.agent import Agent, AgentContext, AgentSpec, Role, agent_name, load_agent
from codea1_env.agent.threads import CLOSE_TIMEOUT_S, CallThread, LoopThread, await_result, too_late
from codea1_env.errors import AgentUnavailable, UserError
from codea1_env.plugins import resolve
from codea1_env.rounds.rounds import Turn

_T = TypeVar("_T")

_CAN_PARSE_IN_THREADS = sys.version_info >= (3, 11, 8)
"""Before 3.11.8, the parser of CPython crashes in two threads (python/cpython#106905)."""
_JOINING_S = 0.002
"""The time for which a batch waits for turns of other games."""
_BLOCKED_S = 1.0
"""A loop that runs nothing for this many seconds counts as blocked."""


@dataclass(frozen=True, slots=True)
class Player:
    """One agent of a run."""

    agent: Agent
    name: str
    """As in error messages and in the Mistake Book, without the role."""
    role: Role
    another: Callable[[], Agent] | None = None
    """Makes one more such agent; None if the agent is an object or a function, which cannot be copied."""
    copies: list[Agent] = field(default_factory=list)
    """Made for concurrent games."""

    def __str__(self) -> str:
        return f"{self.role} {self.name}"

    def declares(self, name: str) -> bool:
        """Whether the agent has an attribute of this name that is True."""
        return getattr(self.agent, name, False) is True

    def has(self, name: str) -> bool:
        """Whether the agent has a method of this name."""
        return callable(getattr(self.agent, name, None))

    def usage(self) -> dict[str, int | float] | None:
        """Return the sum of what the agent and its copies report as used; None if the agent does not report it.

        An agent reports its usage in an attribute `usage`, a dataclass of numbers (such as tokens).
        """
        totals: dict[str, int | float] = {}
        for agent in (self.agent, *self.copies):
            usage = getattr(agent, "usage", None)
            if not is_dataclass(usage) or isinstance(usage, type):
                return None
            for each in fields(usage):
                value = getattr(usage, each.name)
                if isinstance(value, int | float):
                    totals[each.name] = totals.get(each.name, 0) + value
        return totals


@dataclass(frozen=True, slots=True)
class Players:
    """The two agents of a run."""

    coder: Player
    tester: Player


def load_players(coder: AgentSpec, tester: AgentSpec, context: AgentContext) -> Players:
    """Return the agents of two specifications; a specification is a name, a class, a function or an agent.

    Raises:
        UserError: the agent does not exist, cannot be made, or plays the other role.
    """
    return Players(_load(coder, context, "coder"), _load(tester, context, "tester"))


def _load(spec: AgentSpec, context: AgentContext, role: Role) -> Player:
    agent = load_agent(spec, context, role=role)
    target = resolve("agents", spec.partition(",")[0]) if isinstance(spec, str) else spec
    another = (lambda: load_agent(spec, context, role=role)) if inspect.isclass(target) else None
    return Player(agent, agent_name(spec, agent), role, another)


class Interrupted(Exception):
    """A KeyboardInterrupt in an agent's call, which as such would tear down the event loop that plays the games."""


class GameAgent:
    """Calls `act` in a thread per environment slot; or in the caller's thread, with one game at a time and no limit."""

    def __init__(
        self,
        player: Player,
        settings: RunSettings,
        lock: AbstractAsyncContextManager[None],
        *,
        resets_each_game: bool = False,
        copied: bool = False,
    ) -> None:
        """Connect an agent.

        Args:
            player: the agent.
            settings: the run's settings. A person at the terminal may take any time to reply.
            lock: held in every call of an agent that might parse at the same time as another thread.
            resets_each_game: whether the agent is reset before each game, else once for the run.
            copied: whether each slot but the first has a copy of it.
        """
        self.agent = NamedAgent(player.agent, str(player))
        self._player, self._lock, self._copied = player, lock, copied
        self._limit_s = None if player.declares("interactive") else settings.reply_timeout_s
        self._resets_each_game = resets_each_game
        self._in_place = self._limit_s is None and settings.concurrency == 1
        self._one_call: AbstractAsyncContextManager[Any] = lock
        if player.declares("thread_safe"):
            self._one_call = nullcontext()
        elif _CAN_PARSE_IN_THREADS:
            self._one_call = asyncio.Lock()
        self._by_slot: dict[int, NamedAgent] = {}
        self._threads: dict[int, CallThread] = {}
        self._gave_up = False

    async def open(self, run_seed: int) -> None:
        """Begin the run: reset the agent unless each game does.

        Raises:
            AgentUnavailable: it did not return in time.
            UserError: it failed.
        """
        if not self._resets_each_game:
            await self._reset(0, run_seed, "reset()")

    async def begin(self, slot: int, seed: int, where: str) -> None:
        """Begin a game in an environment slot: reset the agent if each game does.

        Raises:
            AgentUnavailable: the agent cannot reply in this game.
            UserError: the agent failed.
        """
        if self._resets_each_game:
            async with self._lock:
                if slot not in self._by_slot:
                    self._by_slot[slot] = self._copy() if self._copied and self._by_slot else self.agent
                await self._reset(slot, seed, where)

    async def reply(self, slot: int, turn: Turn, where: str) -> str:
        """Return the reply to a turn.

        Raises:
            AgentUnavailable: the agent cannot reply in this game, or did not reply in time.
            UserError: the agent failed.
        """
        async with self._one_call:
            return await self._call(slot, self._of(slot).reply, turn, where)

    async def close(self) -> None:
        """Close the agent in the threads that called it, or here if none did."""
        limit_s = min(self._limit_s or inf, CLOSE_TIMEOUT_S) if self._gave_up else self._limit_s
        for slot, thread in self._threads.items():
            with suppress(AgentUnavailable):  # it may wait for a call that was given up
                (await self._wait_for(thread.submit(self._of(slot).close), limit_s)).result()
            thread.end()
        self.agent.close()  # if no thread called it

    async def _reset(self, slot: int, seed: int, where: str) -> None:
        await self._call(slot, self._of(slot).reset, seed, where)

    def _of(self, slot: int) -> NamedAgent:
        return self._by_slot.get(slot, self.agent)

    def _copy(self) -> NamedAgent:
        assert self._player.another is not None
        self._player.copies.append(self._player.another())
        return NamedAgent(self._player.copies[-1], self.agent.name)

    async def _call(self, slot: int, function: Callable[..., _T], *arguments: object, n_replies: int = 1) -> _T:
        """Return the result of a call, which has `n_replies` times the limit."""
        limit_s = None if self._limit_s is None else n_replies * self._limit_s
        try:
            if self._in_place:
                with handled_signals((signal.SIGINT,), signal.default_int_handler):  # asyncio's waits for the call
                    return function(*arguments)
            thread = self._threads.setdefault(slot, CallThread(self.agent.name))
            return (await self._wait_for(thread.submit(function, *arguments), limit_s, thread.end)).result()
        except KeyboardInterrupt:
            raise Interrupted from None

    async def _wait_for(
        self, call: Future[_T], limit_s: float | None, give_up: Callable[[], object] = lambda: None
    ) -> asyncio.Future[_T]:
        """Wait for a call, and return its future.

        Raises:
            AgentUnavailable: the call took longer than the limit, and was given up.
        """
        waiting = await_result(call)
        try:
            await asyncio.wait([waiting], timeout=limit_s)
            if not waiting.done():
                raise too_late(self.agent.name, self._limit_s)
            return waiting
        finally:
            if waiting.cancel():
                self._gave_up = True
                give_up()


class _AsyncAgent(GameAgent):
    """Calls `aact`: the turns are tasks in an event loop of the agent's own, which alone suffers if one blocks."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._loop = LoopThread(self.agent.name)

    async def reply(self, slot: int, turn: Turn, where: str) -> str:
        text = await self._in_loop(where, self.agent.inner.aact, turn.observation, turn.info)
        return self.agent.require_text(text, where)

    async def close(self) -> None:
        aclose = getattr(self.agent.inner, "aclose", None)
        self.agent.is_closed = callable(aclose)
        with suppress(AgentUnavailable):
            ended = await self._wait_for(self._loop.begin_close(aclose), CLOSE_TIMEOUT_S)
            with self.agent.naming_errors("close()"):
                ended.result()
        await super().close()

    async def _reset(self, slot: int, seed: int, where: str) -> None:
        areset = getattr(self.agent.inner, "areset", None)
        await (self._in_loop(where, areset, seed) if callable(areset) else super()._reset(slot, seed, where))

    async def _in_loop(self, where: str, function: Callable[..., Any], *arguments: object) -> Any:
        try:
            done = await self._wait_for(self._loop.submit(function, *arguments), self._limit_s)
        except AgentUnavailable:
            await self._leave_if_blocked()
            raise
        with self.agent.naming_errors(where):
            return done.result()

    async def _leave_if_blocked(self) -> None:
        """Let the next call start another loop if this one does not run, because a coroutine in it never awaits."""
        loop = self._loop
        answer = await_result(loop.submit(lambda: None))
        await asyncio.wait([answer], timeout=_BLOCKED_S)
        if answer.cancel() and self._loop is loop:
            self._loop = LoopThread(self.agent.name)


@dataclass(slots=True)
class _WaitingTurn:
    turn: Turn
    where: str
    reply: Reply | None = None


class _BatchAgent(GameAgent):
    """Calls `act_batch` with all turns that wait when the agent is free."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._waiting: list[_WaitingTurn] = []
        self._busy = asyncio.Lock()

    async def reply(self, slot: int, turn: Turn, where: str) -> str:
        own = _WaitingTurn(turn, where)
        self._waiting.append(own)
        async with self._busy:
            if own.reply is None:  # else it was in the batch of another game
                await asyncio.sleep(_JOINING_S)
                batch, self._waiting = self._waiting, []
                await self._reply_to(batch)
        if isinstance(own.reply, AgentUnavailable):
            raise AgentUnavailable(str(own.reply))  # a new error for each game, since raising one adds to its traceback
        assert own.reply is not None
        return own.reply

    async def _reply_to(self, batch: list[_WaitingTurn]) -> None:
        turns, wheres = [waiting.turn for waiting in batch], [waiting.where for waiting in batch]
        try:
            replies = await self._call(0, self.agent.batch, turns, wheres, n_replies=len(batch))
        except AgentUnavailable as error:
            replies = [error] * len(batch)
        for each, reply in zip(batch, replies, strict=True):
            each.reply = reply


def game_agent(player: Player, settings: RunSettings, lock: AbstractAsyncContextManager[None]) -> GameAgent:
    """Return the connection for an agent; for concurrent games: by `aact`, else `act_batch`, else `act`.

    Args:
        player: the agent.
        settings: the run's settings.
        lock: held in every call of an agent that might parse at the same time as another thread.
    """
    is_stateless = player.declares("stateless")
    if settings.concurrency == 1:
        kind = _AsyncAgent if player.has("areset") else GameAgent
        return kind(player, settings, lock, resets_each_game=not is_stateless)
    if player.has("aact"):
        return _AsyncAgent(player, settings, lock)
    if player.has("act_batch"):
        return _BatchAgent(player, settings, lock)
    copied = player.another is not None and not is_stateless
    return GameAgent(player, settings, lock, resets_each_game=copied, copied=copied)


def require_many_games(player: Player) -> None:
    """Raise UserError unless the agent can play several games at once."""
    if player.declares("interactive"):
        raise UserError(f"{player} plays one game at a time: leave concurrency at 1")
    is_one_object = player.another is None and player.has("reset")
    shares = any(map(player.has, ("aact", "act_batch"))) or any(map(player.declares, ("stateless", "thread_safe")))
    if is_one_object and not shares:
        raise UserError(
            f"{player} is one object that is reset before each game, so it cannot play several at once: pass its "
            "class, give it act_batch or aact, or set stateless = True if its replies depend on seed, observation "
            "and info alone"
        )
