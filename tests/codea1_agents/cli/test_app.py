from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
import typer

from codea1_agents.cli import options
from codea1_agents.cli.app import app
from codea1_agents.play import call_thread
from codea1_env import problems
from codea1_env.errors import MissingExtra

COMMANDS = ["play", "rescore", "agents", "doctor"]
COMMANDS += ["check problems", "check agent", "check env", "check model", "check sandbox"]
COMMANDS += ["report", "book stats", "book survival", "book relapses", "book minimise"]
COMMANDS += ["book show", "book export", "book merge", "book import", "problems list"]
COMMANDS += ["eval coder", "eval tester", "eval compare", "select", "export-tests"]
COMMANDS += [
    "train",
    "presets",
    "export-model",
    "demo coevolve",
    "experiment",
    "game solve",
    "game dynamics",
    "game questions",
]
COMMANDS += ["crossplay"]
COMMANDS += ["pretrain", "sft", "audit", "sandbox clean", "sandbox serve"]


def test_the_list_of_commands_in_these_tests_is_complete() -> None:
    def leaves(command: Any, path: str = "") -> list[str]:
        if not hasattr(command, "commands"):
            return [path]
        return [leaf for name, each in command.commands.items() for leaf in leaves(each, f"{path} {name}".strip())]

    assert sorted(leaves(typer.main.get_command(app))) == sorted(COMMANDS)


GROUPS = [app, *(each.typer_instance for each in app.registered_groups if each.typer_instance)]


@pytest.mark.slow
@pytest.mark.parametrize("callback", [command.callback for group in GROUPS for command in group.registered_commands])
def test_every_command_has_a_body_that_takes_its_options(callback: Callable[..., None]) -> None:
    registered = inspect.getclosurevars(callback).nonlocals
    try:
        body = resolve_name(f"codea1_agents.cli.{registered['body']}")
    except MissingExtra as missing:
        pytest.skip(str(missing))
    (parameter,) = inspect.signature(body).parameters.values()
    assert parameter.annotation == registered["options"].__name__


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(codea1: Callable[..., Any], command: str) -> None:
    result = codea1(*command.split(), "--help")
    assert result.exit_code == 0
    assert f"codea1 {command} " in result.stdout.replace("\n", " ")
    assert "Example:" in result.stdout


def test_the_version_is_that_of_the_distribution(codea1: Callable[..., Any]) -> None:
    assert codea1("--version").stdout == f"codea1-env {version('codea1-env')}\n"


@pytest.mark.parametrize(
    "arguments",
    [["plya"], ["play", "--colour"], ["play", "--alpha", "much"], ["check"], ["rescore"], ["book", "merge"]],
)
def test_bad_usage_is_bad_input(codea1: Callable[..., Any], arguments: list[str]) -> None:
    result = codea1(*arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.stderr


def test_help_is_quick_since_it_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom codea1_agents.cli import main\nsys.argv = ['codea1', 'play', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "sys.exit(', '.join({'numpy', 'gymnasium', 'pettingzoo', 'hypothesis', 'codea1_env'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert done.stderr.strip() == ""
    assert "Usage: codea1 play" in done.stdout


def test_the_defaults_of_the_options_are_those_of_the_modules() -> None:
    assert options.DEFAULT_SOURCE == problems.DEFAULT_SOURCE
    assert options.REPLY_TIMEOUT_S == call_thread.REPLY_TIMEOUT_S


def test_the_installed_script_is_this_command_line() -> None:
    script = Path(sys.executable).with_name("codea1")
    if not script.exists():
        pytest.skip("the project is not installed beside this Python")
    done = subprocess.run([script, "--version"], check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, f"codea1-env {version('codea1-env')}\n")
