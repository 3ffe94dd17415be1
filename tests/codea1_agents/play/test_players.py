from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from codea1_agents.play.players import load_players
from codea1_env.agent import AgentContext
from codea1_env.problems import ProblemSet
from codea1_env.sandbox import Sandbox


@dataclass
class Used:
    tokens: int = 0
    seconds: float = 0.5
    model: str = "m"


@dataclass
class Counting:
    usage: Used = field(default_factory=Used)

    def act(self, observation: Any, info: Any) -> str:
        self.usage.tokens += 1
        return ""


def silent(observation: Any) -> str:
    return ""


@pytest.fixture
def context(toys: ProblemSet, sandbox: Sandbox) -> AgentContext:
    return AgentContext(toys, sandbox)


def test_what_copies_used_is_added_up_and_only_numbers_are_told(context: AgentContext) -> None:
    coder = load_players(Counting, silent, context).coder
    coder.copies.extend([coder.another(), coder.another()])
    for agent in (coder.agent, *coder.copies):
        agent.act({}, {})
    assert coder.usage() == {"tokens": 3, "seconds": 1.5}
    assert load_players(silent, silent, context).coder.usage() is None


@pytest.mark.parametrize(("spec", "can"), [("mutant", True), (Counting, True), (silent, False), (Counting(), False)])
def test_only_names_and_classes_can_be_made_again(context: AgentContext, spec: Any, can: bool) -> None:
    assert (load_players(spec, silent, context).coder.another is not None) is can
