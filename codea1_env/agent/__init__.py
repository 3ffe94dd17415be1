"""The agent protocol, and agents by name."""

from codea1_env.agent.agent import (
    Agent,
    AgentContext,
    AgentSpec,
    EndedReply,
    agent_name,
    load_agent,
    require_agent,
)
from codea1_env.facts.submissions import Info, Observation, Role

__all__ = [
    "Agent",
    "AgentContext",
    "AgentSpec",
    "EndedReply",
    "Info",
    "Observation",
    "Role",
    "agent_name",
    "load_agent",
    "require_agent",
]
