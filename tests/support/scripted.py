"""Agents that reply what a function says."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from codea1_agents.play.named_agent import NamedAgent
from codea1_env.agent import Info, Observation
from codea1_env.errors import AgentUnavailable
from tests.support.toys import fenced


class Scripted:
    """Replies what a function says, or raises AgentUnavailable where it says None; remembers what it was asked."""

    def __init__(self, reply: Callable[[Observation, Info], str | None]) -> None:
        self.asked: list[tuple[Observation, Info]] = []
        self.seeds: list[int] = []
        self._reply = reply

    def reset(self, seed: int) -> None:
        self.seeds.append(seed)

    def act(self, observation: Observation, info: Info) -> str:
        self.asked.append((observation, info))
        reply = self._reply(observation, info)
        if reply is None:
            raise AgentUnavailable("the endpoint is down")
        return reply


def scripted(reply: Callable[[Observation, Info], str | None]) -> tuple[Scripted, NamedAgent]:
    agent = Scripted(reply)
    return agent, NamedAgent(agent, "scripted")


def written(lines: Iterable[str]) -> str:
    return fenced("\n".join(lines))
