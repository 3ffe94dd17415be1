"""`codea1 new problem`, `agent` and `reward`: a file to begin with, which runs as it is."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path
from typing import Annotated

from typer import Argument

from codea1_agents.cli.console import Page, show_next
from codea1_agents.cli.options import Options
from codea1_env.errors import UserError
from codea1_env.records.whole_files import write_text


@dataclass(frozen=True, slots=True, kw_only=True)
class NewOptions(Options):
    """The option of all templates."""

    name: Annotated[str, Argument(help="Name of the new file in the current folder, without its ending.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewProblemOptions(NewOptions):
    """Write a file with one problem; copy its line for more (docs/problems.md).

    \b
    Example:
      codea1 new problem mine
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAgentOptions(NewOptions):
    """Write a module with a coder and a tester (docs/own-agent.md).

    \b
    Example:
      codea1 new agent my_agents
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRewardOptions(NewOptions):
    """Write a module with the rewards of both agents (docs/rules.md).

    \b
    Example:
      codea1 new reward my_rewards
    """


def template(kind: str) -> str:
    """Return the module that `codea1 new` writes: of kind `agent` or `reward`."""
    return files("codea1_agents.cli").joinpath("templates", f"{kind}.txt").read_text(encoding="utf-8")


def new_problem(options: NewProblemOptions) -> None:
    """Write the file.

    Raises:
        UserError: the file exists or cannot be written.
    """
    row = {
        "id": f"{options.name}/clamp",
        "statement": 'def clamp(x, low, high):\n    """Return x, but at least low and at most high."""\n',
        "entry_point": "clamp",
        "solution": "def clamp(x, low, high):\n    return max(low, min(x, high))\n",
        "golden": [{"expression": f"clamp({x}, 0, 9)", "expected": str(max(0, min(x, 9)))} for x in (-1, 4, 12)],
        "examples": ["assert clamp(5, 1, 3) == 3"],
    }
    _write(options, "problem", ".jsonl", json.dumps(row) + "\n")


def new_agent(options: NewAgentOptions) -> None:
    """Write the module.

    Raises:
        UserError: the name is none of a module, or the file exists or cannot be written.
    """
    _write(options, "agent", ".py", template("agent"))


def new_reward(options: NewRewardOptions) -> None:
    """Write the module.

    Raises:
        UserError: the name is none of a module, or the file exists or cannot be written.
    """
    _write(options, "reward", ".py", template("reward"))


def _write(options: NewOptions, kind: str, ending: str, text: str) -> None:
    page, file = Page(as_json=options.as_json), Path(options.name + ending)
    if not options.name.isidentifier():
        raise UserError(f"{options.name!r}: expected letters, digits and underscores, as in my_{kind}s")
    if file.exists():
        raise UserError(f"{file} exists: choose another name")
    is_taken = iskeyword(options.name) or options.name in sys.stdlib_module_names or find_spec(options.name)
    if ending == ".py" and is_taken:
        raise UserError(
            f"{options.name}: Python or an installed package has this name, so the module could not be loaded: choose"
            f" another, as in my_{kind}s"
        )
    write_text(file, text)
    page.say(f"{file}: change it as you like, it runs as it is")
    page.finish(out=str(file))
    show_next(page, f"new {kind}", name=options.name)
