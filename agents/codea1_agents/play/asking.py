"""How agents are asked: for one reply or for many. Whatever they raise becomes one sentence that names them."""

from __future__ import annotations

import hashlib
import inspect
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from codea1_env.agent import Agent, Info
from codea1_env.errors import AgentUnavailable, CodeA1Error, UserError
from codea1_env.rounds.rounds import Turn

Reply: TypeAlias = str | AgentUnavailable
"""A text, or why there is none."""

_SEED_BITS = 53
"""A double holds them, so that any reader of a record keeps a seed exact."""


class Asker:
    """One agent with its name. Games, evaluations and training reach agents through this alone."""

    def __init__(
        self, agent: Agent, name: str, *, seed: int | None = 0, seed_of: Callable[[Turn], int] | None = None
    ) -> None:
        """Take an agent.

        Args:
            agent: who replies.
            name: what errors call it.
            seed: of `ask`; None: an agent with `act_batch` keeps the seed that it has.
            seed_of: of one turn, for an agent without `act_batch`; None: from `seed` and the turn's info.
        """
        self.agent: Any = agent
        self.name = name
        self._seed = seed
        self._seed_of = seed_of or (lambda turn: _seed_of(turn.info, seed or 0))
        self._is_seeded = seed is None
        self.is_closed = False

    def ask(self, turns: Sequence[Turn]) -> list[Reply]:
        """Return one reply per turn, in order, which does not depend on what was asked before.

        An agent with `act_batch` is seeded once and gets all turns of a call together; its draws may depend on seed,
        observation and info only (docs/agents.md). Any other agent is seeded anew before every turn.

        Raises:
            UserError: the agent failed, or returned something that is no text.
        """
        wheres = [_where(turn.info) for turn in turns]
        if not callable(getattr(self.agent, "act_batch", None)):
            return [self._alone(*each) for each in zip(turns, wheres, strict=True)]
        if turns and not self._is_seeded:
            self.reset(self._seed or 0, "reset()")
            self._is_seeded = True
        return self.batch(turns, wheres) if turns else []

    def reset(self, seed: int, where: str) -> None:
        """Reset the agent, where it can be."""
        reset = getattr(self.agent, "reset", None)
        if callable(reset):
            with self.blamed(where):
                reset(seed)

    def reply(self, turn: Turn, where: str) -> str:
        """Return the reply to one turn.

        Raises:
            AgentUnavailable: there is none.
            UserError: the agent failed, or returned something that is no text.
        """
        with self.blamed(where):
            found: object = self.agent.act(turn.observation, turn.info)
        return self.text(found, where)

    def batch(self, turns: Sequence[Turn], wheres: Sequence[str]) -> list[Reply]:
        """Return the replies of an agent with `act_batch`; at least one.

        Raises:
            UserError: the agent failed, or returned something that is no list of texts and `AgentUnavailable`.
        """
        where = wheres[0] if len(turns) == 1 else f"a batch of {len(turns)}, the first of them {wheres[0]}"
        try:
            with self.blamed(where):
                found = self.agent.act_batch([turn.observation for turn in turns], [turn.info for turn in turns])
        except AgentUnavailable as error:
            return [error] * len(turns)
        if not isinstance(found, list | tuple):
            raise UserError(f"{self.name} returned {type(found).__name__} in {where}, expected a list of replies")
        if len(found) != len(turns):
            raise UserError(f"{self.name} returned {len(found)} replies to {len(turns)} observations in {where}")
        return [
            each if isinstance(each, AgentUnavailable) else self.text(each, place)
            for each, place in zip(found, wheres, strict=True)
        ]

    def text(self, found: object, where: str) -> str:
        """Return a reply.

        Raises:
            UserError: it is no text.
        """
        if inspect.iscoroutine(found):
            found.close()  # or Python would warn that nobody awaited it
        if not isinstance(found, str):
            raise UserError(f"{self.name} returned {type(found).__name__} in {where}, expected text (str)")
        return found

    def close(self) -> None:
        """Close the agent, where it can be; once."""
        close = getattr(self.agent, "close", None)
        if callable(close) and not self.is_closed:
            self.is_closed = True
            with self.blamed("close()"):
                close()

    @contextmanager
    def blamed(self, where: str) -> Iterator[None]:
        """Turn what agents raise into one sentence; errors made on purpose pass, and Ctrl-C."""
        try:
            yield
        except (CodeA1Error, KeyboardInterrupt):
            raise
        except SystemExit as error:  # its end must not be taken for ours, nor its exit code for the command line's
            raise UserError(f"{self.name} called sys.exit({error.code!r}) in {where}") from error
        except BaseException as error:  # the boundary to agents, which are anyone's code
            raise UserError(f"{self.name} failed in {where}: {_blame(error)}") from error

    def _alone(self, turn: Turn, where: str) -> Reply:
        self.reset(self._seed_of(turn), where)
        try:
            return self.reply(turn, where)
        except AgentUnavailable as error:
            return error


def _where(info: Info) -> str:
    sample = f", sample {info['sample']}" if "sample" in info else ""
    return f"problem {info['problem_id']}{sample}"


def _seed_of(info: Info, run_seed: int) -> int:
    key = f"{run_seed}/{info['role']}/{info['problem_id']}/{info['sample']}/{info['round']}"
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - _SEED_BITS)


def _blame(error: BaseException) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    said = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}{f': {said}' if said else ''} ({frame.filename}:{frame.lineno})"
