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


def test_the_line_is_the_agents_own_and_not_that_of_a_package_that_it_calls(
    tmp_path: Path, toys: ProblemSet, sandbox: Sandbox
) -> None:
    package = module_at(tmp_path / "site-packages" / "library" / "deep.py", LIBRARY)
    mine = module_at(tmp_path / "mine.py", AGENT)
    mine.fails = package.fails  # type: ignore[attr-defined]
    agent = load_agent(mine.act, AgentContext(toys, sandbox))
    assert failure(agent) == f"mine failed in problem p: KeyError: 'inside' ({tmp_path / 'mine.py'}:5)"


def test_the_line_is_the_agents_own_if_it_calls_the_standard_library_or_this_project(
    toys: ProblemSet, sandbox: Sandbox
) -> None:
    def parses(observation: Any) -> str:
        return str(json.loads("{"))

    def looks_up(observation: Any) -> str:
        return toys.by_id(7).id  # type: ignore[arg-type]

    for agent in (parses, looks_up):
        if agent is looks_up:
            toys = None  # type: ignore[assignment]
        place = f"({__file__}:{agent.__code__.co_firstlineno + 1})"
        assert place in failure(load_agent(agent, AgentContext(toys, sandbox)))


def test_the_line_of_an_installed_agent_is_in_its_package(tmp_path: Path, toys: ProblemSet, sandbox: Sandbox) -> None:
    installed = tmp_path / "site-packages"
    library = module_at(installed / "library" / "deep.py", LIBRARY)
    mine = module_at(installed / "mine" / "agent.py", AGENT)
    mine.fails = library.fails  # type: ignore[attr-defined]
    assert f"({installed / 'mine' / 'agent.py'}:5)" in failure(load_agent(mine.act, AgentContext(toys, sandbox)))


def test_an_exit_has_a_line_too(toys: ProblemSet, sandbox: Sandbox) -> None:
    def leaves(observation: Any) -> str:
        sys.exit(3)

    line = leaves.__code__.co_firstlineno + 1
    assert failure(load_agent(leaves, AgentContext(toys, sandbox))).endswith(f"in problem p ({__file__}:{line})")
