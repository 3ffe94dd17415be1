"""Agents that reply what a function says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from codea1_agents.play.named_agent import NamedAgent
from codea1_env.agent import EndedReply, Info, Observation
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


class Streaming(Scripted):
    """Yields what a function says of a position, the last one first."""

    def __init__(self, reply: Callable[[int], str | AgentUnavailable]) -> None:
        super().__init__(lambda observation, info: None)
        self._reply_to = reply
        self.yielded: list[int] = []

    def act_stream(self, observations: Sequence[Observation], infos: Sequence[Info]) -> Iterator[EndedReply]:
        for position in reversed(range(len(observations))):
            self.yielded.append(position)
            yield EndedReply(position, self._reply_to(position))


def scripted(reply: Callable[[Observation, Info], str | None]) -> tuple[Scripted, NamedAgent]:
    agent = Scripted(reply)
    return agent, NamedAgent(agent, "scripted")


def written(lines: Iterable[str]) -> str:
    return fenced("\n".join(lines))
