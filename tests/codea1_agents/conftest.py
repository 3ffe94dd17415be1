"""What tests of several packages share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from codea1_agents.asking import Asker
from codea1_env.agent import Info, Observation
from codea1_env.errors import AgentUnavailable


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Ray in this process and on this machine only, for the tests of one module."""
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    torch = pytest.importorskip("torch", reason="torch is not installed")
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    torch.set_num_threads(1)
    ray.shutdown()  # what another module has left
    ray.init(num_cpus=8, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


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
