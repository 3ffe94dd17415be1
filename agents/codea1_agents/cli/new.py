"""`codea1 new problem`, `agent` and `reward`: a file to begin with, which runs as it is."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
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


AGENT = '''\
"""A coder and a tester. Both get an observation and return a text."""

import re


def coder(observation):
    """Return a program. This one loads and knows nothing; read observation["problem"] instead."""
    name = observation["entry_point"].rpartition(".")[2]
    return f"def {name}(*arguments):\\n    return None\\n"


def tester(observation):
    """Return asserts. Copies of examples pay nothing, so this one only asks for some answer to inputs near them.

    It earns much more with answers, and with inputs that observation["program"] gets wrong.
    """
    calls = re.findall(r"^assert (.+?) == ", observation["examples"], re.MULTILINE)
    near = [re.sub(r"\\d+", lambda number: str(int(number[0]) + 1), call) for call in calls]
    return "\\n".join(f"assert {call} is not None" for call in near or [guessed_call(observation)])


def guessed_call(observation):
    """Return a call with a number for each parameter, where the statement has no examples."""
    name, text = observation["entry_point"], observation["problem"] + observation["program"]
    signature = re.search(rf"def {name.rpartition('.')[2]}\\((.*?)\\)", text, re.DOTALL)
    if signature is None:
        return f"{name}('1')"  # a program that reads text
    parameters = [part for part in signature[1].split(",") if part.strip() not in ("", "self")]
    annotated = re.findall(r"\\w+ *:", signature[1])  # types have commas, too
    return f"{name}({', '.join('1' for _ in annotated or parameters)})"
'''
_REWARD = '''\
"""The rewards of both agents, computed from the verdicts."""

from codea1_env.rules.rewards import CandidateRewards, Reward, RewardPart


def reward(group, rules):
    """Pay a tester for beating the program, and the coder for each suite that does not.

    `group` holds reports of programs that the same suites have tested: verdicts of programs, suites and cases.
    """
    rewards = []
    for report in group:
        beaten = [float(suite.beats) for suite in report.suites]
        unbeaten = 1.0 - sum(beaten) / max(len(beaten), 1) if report.loads else 0.0
        testers = tuple(Reward.of(RewardPart("beats", value, 1.0)) for value in beaten)
        rewards.append(CandidateRewards(Reward.of(RewardPart("unbeaten", unbeaten, 1.0)), testers))
    return rewards
'''


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
    _write(options, "agent", ".py", AGENT)


def new_reward(options: NewRewardOptions) -> None:
    """Write the module.

    Raises:
        UserError: the name is none of a module, or the file exists or cannot be written.
    """
    _write(options, "reward", ".py", _REWARD)


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
