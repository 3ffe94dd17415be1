"""Asking an agent many things at once, outside of any game: each turn with infos and seeds of its own."""

from __future__ import annotations

import hashlib
import inspect
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from codea1_env.agent import Agent, Role
from codea1_env.errors import AgentUnavailable, CodeA1Error, UserError
from codea1_env.observations import Seen, turn_info
from codea1_env.problems.problem import Problem

__all__ = ["Asker", "Reply", "Turn"]

_SEED_BITS = 53
"""A double holds them, so that any reader of a record keeps a seed exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One thing that an agent is asked."""

    problem: Problem
    role: Role
    sample: int
    """Number of the reply among those to the same observation, from 0; without it they would all be the same one."""
    round: int = 0
    program: str = ""
    feedback: str = ""
    tests: int = 8
    """Tests asked of a tester."""
    view: str = ""
    """What a tester is told about the program (`codea1_agents.prompts.templates.View`); empty: what it sees."""

    def observation(self) -> dict[str, Any]:
        """Return what the agent sees; the keys are those of the environment."""
        return Seen(self.problem, self.round, self.program, self.feedback).to_dict()

    def info(self) -> dict[str, Any]:
        """Return the environment's infos with `sample`, and `tester_view` where one is set."""
        infos = turn_info(
            self.problem,
            episode_id=f"{self.problem.id}/{self.sample}",
            role=self.role,
            round_=self.round,
            tests_per_suite=self.tests,
            program=self.program,
        )
        return infos | {"sample": self.sample} | ({"tester_view": self.view} if self.view else {})

    def seed(self, run_seed: int) -> int:
        """Return a seed of this turn's own, for agents that draw one reply after the other."""
        key = f"{run_seed}/{self.role}/{self.problem.id}/{self.sample}/{self.round}"
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:8], "big") >> (64 - _SEED_BITS)


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of asking."""

    text: str | None
    """None where the agent was unavailable."""
    fault: str = ""
    """Why it was."""


class Asker:
    """One agent with its name and the seed of the run.

    An agent with `act_batch` is seeded once and gets all turns of a call together; its draws may depend on seed,
    observation and info only (docs/agents.md). Any other agent is seeded anew before every turn. Either way a reply
    does not depend on which turns were asked before, so that an interrupted evaluation can go on.
    """

    def __init__(self, agent: Agent, name: str, *, seed: int = 0) -> None:
        self._agent = agent
        self._name = name
        self._seed = seed
        self._is_seeded = False

    def ask(self, turns: Sequence[Turn]) -> list[Reply]:
        """Return one reply per turn, in order.

        Raises:
            UserError: the agent failed, or returned something that is no text.
        """
        act_batch = getattr(self._agent, "act_batch", None)
        if callable(act_batch) and turns:
            return self._ask_together(act_batch, turns)
        return [self._ask_one(turn) for turn in turns]

    def close(self) -> None:
        """Let the agent go."""
        close = getattr(self._agent, "close", None)
        if callable(close):
            self._called(close, (), "close()")

    def _ask_together(self, act_batch: Callable[..., Any], turns: Sequence[Turn]) -> list[Reply]:
        where = f"a batch of {len(turns)}"
        if not self._is_seeded:
            self._reset(self._seed, where)
            self._is_seeded = True
        try:
            found = self._called(
                act_batch, ([turn.observation() for turn in turns], [turn.info() for turn in turns]), where
            )
        except AgentUnavailable as error:
            return [Reply(None, str(error))] * len(turns)
        if not isinstance(found, list | tuple) or len(found) != len(turns):
            raise UserError(f"{self._name}: act_batch must return a list of {len(turns)} replies")
        return [self._reply(each, where) for each in found]

    def _ask_one(self, turn: Turn) -> Reply:
        where = f"problem {turn.problem.id}, sample {turn.sample}"
        self._reset(turn.seed(self._seed), where)
        try:
            return self._reply(self._called(self._agent.act, (turn.observation(), turn.info()), where), where)
        except AgentUnavailable as error:
            return Reply(None, str(error))

    def _reset(self, seed: int, where: str) -> None:
        reset = getattr(self._agent, "reset", None)
        if callable(reset):
            self._called(reset, (seed,), where)

    def _reply(self, found: object, where: str) -> Reply:
        if isinstance(found, AgentUnavailable):
            return Reply(None, str(found))
        if inspect.iscoroutine(found):
            found.close()  # or Python would warn that nobody awaited it
        if not isinstance(found, str):
            raise UserError(f"{self._name} returned {type(found).__name__} in {where}, expected text (str)")
        return Reply(found)

    def _called(self, function: Callable[..., Any], arguments: tuple[Any, ...], where: str) -> Any:
        try:
            return function(*arguments)
        except CodeA1Error:
            raise
        except (Exception, SystemExit) as error:  # the boundary to agents, which are anyone's code
            raise UserError(f"{self._name} failed in {where}: {_blame(error)}") from error


def _blame(error: BaseException) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    said = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}{f': {said}' if said else ''} ({frame.filename}:{frame.lineno})"
