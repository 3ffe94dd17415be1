"""Who plays: the two agents of a run, and whom to blame for what they do."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, cast

from codea1_env.agent import Agent, AgentContext, AgentSpec, Info, Observation, Role, agent_name, load_agent
from codea1_env.errors import CodeA1Error, UserError
from codea1_env.plugins import resolve


@dataclass(slots=True)
class Copies:
    """Makes more agents of one specification, and keeps them."""

    spec: AgentSpec
    context: AgentContext
    role: Role
    made: list[Agent] = field(default_factory=list)

    def another(self) -> Agent:
        """Return one more."""
        agent = load_agent(self.spec, self.context, role=self.role)
        self.made.append(agent)
        return agent


@dataclass(frozen=True, slots=True)
class Players:
    """The two agents of a run, with the names that errors call them by."""

    coder: Agent
    tester: Agent
    coder_name: str
    tester_name: str
    coder_copies: Copies | None = None
    """For games at the same time; None: there is only this one, an object or a function."""
    tester_copies: Copies | None = None


def load_players(coder: AgentSpec, tester: AgentSpec, context: AgentContext) -> Players:
    """Return the agents that two specifications name or are.

    Raises:
        UserError: nothing of that name, it cannot be made, or it plays the other role.
    """
    agents = load_agent(coder, context, role="coder"), load_agent(tester, context, role="tester")
    return Players(
        *agents,
        agent_name(coder, agents[0]),
        agent_name(tester, agents[1]),
        _copies(coder, context, "coder"),
        _copies(tester, context, "tester"),
    )


def _copies(spec: AgentSpec, context: AgentContext, role: Role) -> Copies | None:
    target = resolve("agents", spec.partition(",")[0]) if isinstance(spec, str) else spec
    return Copies(spec, context, role) if inspect.isclass(target) else None


def usage_of(agent: Agent, copies: Copies | None = None) -> dict[str, int | float] | None:
    """Return what an agent and its copies say they have used, added up; None: it does not tell.

    An agent tells by an attribute `usage`, a dataclass of numbers (such as tokens).
    """
    told = [getattr(each, "usage", None) for each in (agent, *(copies.made if copies else ()))]
    totals: dict[str, int | float] = {}
    for usage in told:
        if not is_dataclass(usage) or isinstance(usage, type):
            return None
        for each in fields(usage):
            value = getattr(usage, each.name)
            if isinstance(value, int | float):
                totals[each.name] = totals.get(each.name, 0) + value
    return totals


@dataclass(slots=True)
class Seat:
    """One agent and who to blame for what it does; whatever it raises becomes one sentence."""

    name: str
    agent: Agent
    copies: Copies | None = None
    is_closed: bool = False

    @property
    def needs_one_reset(self) -> bool:
        """Whether a reset at the beginning of the run does for all of its episodes."""
        return getattr(self.agent, "stateless", False) is True

    @property
    def takes_batches(self) -> bool:
        """Whether the agent replies to several turns at once."""
        return callable(getattr(self.agent, "act_batch", None))

    def reset(self, seed: int, where: str, agent: Agent | None = None) -> None:
        """Reset the agent, or a copy of it, where it can be."""
        reset = getattr(agent or self.agent, "reset", None)
        if callable(reset):
            with self.blamed(where):
                reset(seed)

    def act(self, observation: Observation, info: Info, where: str, agent: Agent | None = None) -> str:
        """Return the reply of the agent, or of a copy of it."""
        with self.blamed(where):
            reply: object = (agent or self.agent).act(observation, info)
        return self.text(reply, where)

    def act_batch(self, observations: Sequence[Observation], infos: Sequence[Info], where: str) -> Sequence[object]:
        """Return what the agent replies to several turns at once; it may be AgentUnavailable in place of some.

        Raises:
            UserError: it failed, or these are not as many.
        """
        agent: Any = self.agent
        with self.blamed(where):
            replies = agent.act_batch(observations, infos)
        is_list = isinstance(replies, Sequence) and not isinstance(replies, str)
        if not is_list or len(replies) != len(infos):
            found = f"{len(replies)} replies" if is_list else type(replies).__name__
            raise UserError(f"{self.name} returned {found} to {len(infos)} observations in {where}")
        return cast(Sequence[object], replies)

    def text(self, reply: object, where: str) -> str:
        """Return the reply.

        Raises:
            UserError: it is no text.
        """
        if inspect.iscoroutine(reply):
            reply.close()  # or Python would warn that nobody awaited it
        if not isinstance(reply, str):
            raise UserError(f"{self.name} returned {type(reply).__name__} in {where}, expected text (str)")
        return reply

    def close(self) -> None:
        """Close the agent and its copies, where they can be; once."""
        if self.is_closed:
            return
        self.is_closed = True
        for agent in (self.agent, *(self.copies.made if self.copies else ())):
            close: Callable[[], Any] | None = getattr(agent, "close", None)
            if callable(close):
                with self.blamed("close()"):
                    close()

    @contextmanager
    def blamed(self, where: str) -> Iterator[None]:
        """Turn what agents raise into one sentence; errors made on purpose pass."""
        try:
            yield
        except CodeA1Error:
            raise
        except Exception as error:  # the boundary to agents, which are anyone's code
            raise UserError(f"{self.name} failed in {where}: {_blame(error)}") from error
        except SystemExit as error:  # its end must not be taken for ours, nor its exit code for the command line's
            raise UserError(f"{self.name} called sys.exit({error.code!r}) in {where}") from error


def _blame(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    said = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}{f': {said}' if said else ''} ({frame.filename}:{frame.lineno})"
