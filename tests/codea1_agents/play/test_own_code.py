from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from codea1_agents.play.named_agent import NamedAgent
from codea1_env.agent import AgentContext, load_agent
from codea1_env.errors import UserError
from codea1_env.problems import ProblemSet
from codea1_env.rounds.rounds import Turn
from codea1_env.sandbox import Sandbox


def module_at(path: Path, source: str) -> ModuleType:
    """Return a module as if it had been imported from a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    module = ModuleType(path.stem)
    exec(compile(source, str(path), "exec"), module.__dict__)
    return module


def failure(agent: Any) -> str:
    with pytest.raises(UserError) as caught:
        NamedAgent(agent, "mine").reply(Turn({"problem": "?"}, {}), "problem p")
    return str(caught.value)


LIBRARY = "def fails(*_):\n    raise KeyError('inside')\n"
AGENT = "def act(observation):\n    return help_me(observation)\n\ndef help_me(observation):\n    return fails()\n"


@pytest.fixture
def context(toys: ProblemSet, sandbox: Sandbox) -> AgentContext:
    return AgentContext(toys, sandbox)


@pytest.mark.parametrize("place", ["mine.py", "site-packages/mine/agent.py"])
def test_the_line_is_that_of_the_agent_and_not_of_a_package(place: str, tmp_path: Path, context: AgentContext) -> None:
    mine = module_at(tmp_path / place, AGENT)
    mine.fails = module_at(tmp_path / "site-packages" / "library" / "deep.py", LIBRARY).fails  # type: ignore[attr-defined]
    said = failure(load_agent(mine.act, context))
    assert said == f"mine failed in problem p: KeyError: 'inside' ({tmp_path / place}:5)"


def test_the_line_is_that_of_the_agent_also_if_it_exits_or_calls_others(context: AgentContext) -> None:
    problems: Any = context.problems

    def parses(observation: Any) -> str:
        return str(json.loads("{"))

    def looks_up(observation: Any) -> str:
        return str(problems[None])  # raises in codea1_env

    def leaves(observation: Any) -> str:
        sys.exit(3)

    for agent in (parses, looks_up, leaves):
        place = f"({__file__}:{agent.__code__.co_firstlineno + 1})"
        assert place in failure(load_agent(agent, context))


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_an_error_that_cannot_be_printed_is_the_agents_fault_too() -> None:
    def fails(observation: Any, info: Any) -> str:
        raise Unprintable

    assert "Unprintable" in failure(load_agent(fails, AgentContext(ProblemSet("none", ()), None)))  # type: ignore[arg-type]
