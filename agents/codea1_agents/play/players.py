"""The two agents of a run."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, fields, is_dataclass

from codea1_env.agent import Agent, AgentContext, AgentSpec, Role, agent_name, load_agent
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
