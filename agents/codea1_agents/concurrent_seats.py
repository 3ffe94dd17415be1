"""How one agent serves many games at once, by what it offers: `aact`, else `act_batch`, else `act`.

Whichever it is, an answer or an error reaches only the game that asked.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from codea1_agents.games import Game, Turn
from codea1_agents.lanes import Lane
from codea1_agents.parsing_lock import ParsingLock
from codea1_agents.seats import Copies, Seat
from codea1_env.agent import Agent
from codea1_env.errors import AgentUnavailable, UserError

_PATIENCE_S = 5.0
"""How long the end of a run waits for a call that is still under way."""


class ConcurrentSeat(ABC):
    """One agent of a run of concurrent games; all but `close` within one event loop."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat

    async def open(self, run_seed: int) -> None:
        """Begin the run: one reset, with the run's seed."""
        await self._reset(run_seed)

    async def begin(self, game: Game, seed: int) -> None:  # noqa: B027  most need nothing
        """Begin a game."""

    @abstractmethod
    async def ask(self, game: Game, turn: Turn) -> str:
        """Return the reply.

        Raises:
            AgentUnavailable: there is none, for this game.
            UserError: the agent failed.
        """

    async def end(self) -> None:  # noqa: B027  most need nothing
        """End what belongs to the event loop."""

    def close(self) -> None:
        """End the run."""
        self.seat.close()

    async def _reset(self, seed: int) -> None:
        self.seat.reset(seed, "reset()")


def concurrent_seat(seat: Seat, parsing: ParsingLock) -> ConcurrentSeat:
    """Return the way in which this agent serves many games.

    Raises:
        UserError: it cannot.
    """
    agent: Any = seat.agent
    if getattr(agent, "interactive", False) is True:
        raise UserError(f"{seat.name} plays one game at a time: leave concurrency at 1")
    if callable(getattr(agent, "aact", None)):
        return _AsyncSeat(seat)
    if seat.takes_batches:
        return _BatchSeat(seat)
    if seat.copies is not None and not seat.needs_one_reset:
        return _CopiesSeat(seat, parsing, seat.copies)
    if callable(getattr(agent, "reset", None)) and not (seat.needs_one_reset or _is_thread_safe(agent)):
        raise UserError(
            f"{seat.name} is one object that is reset before each game, so it cannot play several at once: pass its "
            "class, give it act_batch or aact, or set stateless = True if its replies depend on seed, observation and "
            "info alone"
        )
    return _SharedSeat(seat, parsing)


def _is_thread_safe(agent: object) -> bool:
    return getattr(agent, "thread_safe", False) is True


class _AsyncSeat(ConcurrentSeat):
    """Each question is a task of its own."""

    async def ask(self, game: Game, turn: Turn) -> str:
        agent: Any = self.seat.agent
        with self.seat.blamed(game.where):
            reply = await agent.aact(turn.observation, turn.info)
        return self.seat.text(reply, game.where)

    async def end(self) -> None:
        aclose = getattr(self.seat.agent, "aclose", None)
        if callable(aclose) and not self.seat.is_closed:
            self.seat.is_closed = True
            with self.seat.blamed("close()"):
                await aclose()

    async def _reset(self, seed: int) -> None:
        areset = getattr(self.seat.agent, "areset", None)
        if not callable(areset):
            await super()._reset(seed)
            return
        with self.seat.blamed("reset()"):
            await areset(seed)


@dataclass(frozen=True, slots=True)
class _Question:
    turn: Turn
    where: str
    reply: asyncio.Future[str]


class _BatchSeat(ConcurrentSeat):
    """All questions that are open when the agent is free go to it together."""

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self._lane = Lane(seat.name)
        self._open: list[_Question] = []
        self._answering: asyncio.Task[None] | None = None

    async def ask(self, game: Game, turn: Turn) -> str:
        question = _Question(turn, game.where, asyncio.get_running_loop().create_future())
        self._open.append(question)
        if self._answering is None or self._answering.done():
            self._answering = asyncio.create_task(self._answer())
        return await question.reply

    async def _answer(self) -> None:
        while True:
            await asyncio.sleep(0)  # other games that are as far as this one may join
            batch = [each for each in self._open if not each.reply.done()]
            self._open = []
            if not batch:
                return
            try:
                replies = await self._lane.call(self._asked, batch)
            except Exception as error:  # noqa: BLE001  handed to whoever waits
                replies = [error] * len(batch)
            for question, reply in zip(batch, replies, strict=True):
                self._settle(question, reply)

    def _settle(self, question: _Question, reply: object) -> None:
        if question.reply.done():  # cancelled
            return
        try:
            text = reply if isinstance(reply, Exception) else self.seat.text(reply, question.where)
        except UserError as error:
            text = error
        if isinstance(text, Exception):
            question.reply.set_exception(text)
        else:
            question.reply.set_result(text)

    def _asked(self, batch: list[_Question]) -> list[object]:
        where = batch[0].where if len(batch) == 1 else f"{len(batch)} games, the first of them {batch[0].where}"
        turns = [each.turn for each in batch]
        replies = self.seat.act_batch([turn.observation for turn in turns], [turn.info for turn in turns], where)
        return [_of_this_game(each) for each in replies]

    def close(self) -> None:
        self._lane.close(_PATIENCE_S)
        super().close()


def _of_this_game(reply: object) -> object:
    """Return a reply; for an error in its place one of its own, since raising one adds to its traceback."""
    return AgentUnavailable(str(reply)) if isinstance(reply, AgentUnavailable) else reply


class _SharedSeat(ConcurrentSeat):
    """One agent with `act` only: its calls come one after the other, or in threads if it says that it bears that."""

    def __init__(self, seat: Seat, parsing: ParsingLock) -> None:
        super().__init__(seat)
        self._parsing = parsing
        self._threads = _is_thread_safe(seat.agent)
        self._lanes: dict[int, Lane] = {}

    async def ask(self, game: Game, turn: Turn) -> str:
        arguments = (turn.observation, turn.info, game.where, self._agent_of(game))
        return str(await self._called(game, self.seat.act, *arguments))

    def close(self) -> None:
        for lane in self._lanes.values():
            lane.close(_PATIENCE_S / len(self._lanes))
        super().close()

    def _agent_of(self, game: Game) -> Agent:
        return self.seat.agent

    async def _called(self, game: Game, function: Callable[..., Any], *arguments: object) -> Any:
        def locked() -> Any:
            with self._parsing.held():
                return function(*arguments)

        if self._threads:
            return await self._lane(game).call(function, *arguments)
        return await self._lane(game).call(locked)

    def _lane(self, game: Game) -> Lane:
        number = game.table if self._threads else 0
        if number not in self._lanes:
            self._lanes[number] = Lane(self.seat.name)
        return self._lanes[number]


class _CopiesSeat(_SharedSeat):
    """An agent of its own for each table, which is reset before each game, as if there were no other games."""

    def __init__(self, seat: Seat, parsing: ParsingLock, copies: Copies) -> None:
        super().__init__(seat, parsing)
        self._copies = copies
        self._agents: dict[int, Agent] = {}
        self._first: Agent | None = seat.agent
        """Made to begin with, and not at any table yet."""

    async def open(self, run_seed: int) -> None:
        """Nothing: each game has a reset of its own."""

    async def begin(self, game: Game, seed: int) -> None:
        if game.table not in self._agents:
            self._agents[game.table] = await self._new(game)
        await self._called(game, self.seat.reset, seed, game.where, self._agents[game.table])

    async def _new(self, game: Game) -> Agent:
        first, self._first = self._first, None
        # Where the others are asked, since making an agent may touch what they write.
        return first or await self._called(game, self._copies.another)

    def _agent_of(self, game: Game) -> Agent:
        return self._agents[game.table]
