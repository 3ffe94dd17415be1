"""The two agents of a run."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, fields, is_dataclass

from codea1_env.agent import Agent, AgentContext, AgentSpec, Role, agent_name, load_agent
from codea1_env.plugins import resolve


@dataclass(slots=True)
class Copies:
    """Makes further agents from one specification, and keeps them."""

    spec: AgentSpec
    context: AgentContext
    role: Role
    made: list[Agent] = field(default_factory=list)

    def another(self) -> Agent:
        """Return one more agent."""
        agent = load_agent(self.spec, self.context, role=self.role)
        self.made.append(agent)
        return agent


@dataclass(frozen=True, slots=True)
class Players:
    """The two agents of a run, with their names in error messages."""

    coder: Agent
    tester: Agent
    coder_name: str
    tester_name: str
    coder_copies: Copies | None = None
    """For concurrent games; None if the agent is an object or a function, which cannot be copied."""
    tester_copies: Copies | None = None

    @property
    def are_interactive(self) -> bool:
        """Whether one of them is a person at the terminal."""
        return any(getattr(each, "interactive", False) is True for each in (self.coder, self.tester))


def load_players(coder: AgentSpec, tester: AgentSpec, context: AgentContext) -> Players:
    """Return the agents of two specifications; a specification is a name, a class, a function or an agent.

    Raises:
        UserError: there is no agent of that name, it cannot be made, or it plays the other role.
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
    """Return the sum of what an agent and its copies report as used; None if the agent does not report it.

    An agent reports its usage in an attribute `usage`, a dataclass of numbers (such as tokens).
    """
    reported = [getattr(each, "usage", None) for each in (agent, *(copies.made if copies else ()))]
    totals: dict[str, int | float] = {}
    for usage in reported:
        if not is_dataclass(usage) or isinstance(usage, type):
            return None
        for each in fields(usage):
            value = getattr(usage, each.name)
            if isinstance(value, int | float):
                totals[each.name] = totals.get(each.name, 0) + value
    return totals
