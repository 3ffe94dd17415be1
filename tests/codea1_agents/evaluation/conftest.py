"""A few tiny problems, and agents made of replies."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from codea1_agents.evaluation.asking import Asker
from codea1_env.agent import Info, Observation
from codea1_env.errors import AgentUnavailable
from codea1_env.problems.problem import GoldenCase, Problem, ProblemSet
from codea1_env.sandbox import Sandbox, load_sandbox


@pytest.fixture
def problems() -> ProblemSet:
    """Two problems: the larger of two numbers, and the sign of one."""
    larger = Problem(
        id="larger",
        statement="def larger(a, b):\n    '''Return the larger number.'''\n",
        entry_point="larger",
        solution="def larger(a, b):\n    if a > b:\n        return a\n    return b\n",
        golden=(GoldenCase("larger(1, 2)", "2"), GoldenCase("larger(3, 2)", "3")),
    )
    sign = Problem(
        id="sign",
        statement="def sign(n):\n    '''Return -1, 0 or 1.'''\n",
        entry_point="sign",
        solution="def sign(n):\n    return (n > 0) - (n < 0)\n",
        golden=(GoldenCase("sign(5)", "1"), GoldenCase("sign(0)", "0"), GoldenCase("sign(-5)", "-1")),
    )
    return ProblemSet("tiny", (larger, sign))


@pytest.fixture
def sandbox() -> Sandbox:
    return load_sandbox("local")


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


@pytest.fixture
def scripted() -> Callable[[Callable[[Observation, Info], str | None]], tuple[Scripted, Asker]]:
    """Make an agent out of a function, and what asks it."""

    def make(reply: Callable[[Observation, Info], str | None]) -> tuple[Scripted, Asker]:
        agent = Scripted(reply)
        return agent, Asker(agent, "scripted")

    return make


@pytest.fixture
def written() -> Callable[[Iterable[str]], str]:
    """Put lines into a block of Python."""

    def write(lines: Iterable[str]) -> str:
        return "```python\n" + "\n".join(lines) + "\n```"

    return write
