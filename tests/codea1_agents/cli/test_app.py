from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from pkgutil import resolve_name
from types import NoneType
from typing import Any, get_args, get_type_hints

import pytest

from codea1_agents.cli import options
from codea1_agents.cli.app import ENTRIES, all_commands
from codea1_agents.cli.boundary import OLD_NAMES
from codea1_agents.play import call_thread
from codea1_env import problems
from codea1_env.errors import MissingExtra

COMMANDS = all_commands()
BODIES = {
    name if isinstance(entry.commands, tuple) else f"{name} {each}": pair
    for name, entry in ENTRIES.items()
    for each, pair in ([("", entry.commands)] if isinstance(entry.commands, tuple) else entry.commands.items())
}
MEANINGS = {
    "-p": {"--problems"},
    "-n": {"--episodes", "--samples", "--candidates", "--top"},
    "-m": {"--suites"},
    "-o": {"--out"},
    "-q": {"--quiet"},
}
"""The meaning of each letter: the options that it stands for."""


def options_of(command: Any) -> list[Any]:
    return [each for each in command.params if each.param_type_name == "option"]


@pytest.mark.slow
@pytest.mark.parametrize("command", BODIES)
def test_every_command_has_a_body_that_takes_its_options(command: str) -> None:
    declared, body = BODIES[command]
    try:
        function = resolve_name(f"codea1_agents.cli.{body}")
    except MissingExtra as missing:
        pytest.skip(str(missing))
    (parameter,) = inspect.signature(function).parameters.values()
    assert parameter.annotation == declared.partition(":")[2]


def test_a_letter_has_one_meaning_and_a_name_one_declaration_in_all_commands() -> None:
    letters: dict[str, set[str]] = {}
    declared: dict[str, set[tuple[Any, ...]]] = {}
    for path, command in COMMANDS.items():
        hints = get_type_hints(resolve_name(f"codea1_agents.cli.{BODIES[path][0]}"))
        for option in options_of(command):
            *short, name = sorted(option.opts, key=len)
            for letter in short:
                letters.setdefault(letter, set()).add(name)
            kind = frozenset(get_args(hints[option.name]) or (hints[option.name],)) - {NoneType}
            declared.setdefault(name, set()).add((*short, *option.secondary_opts, kind))
    assert letters == MEANINGS
    assert {name: kinds for name, kinds in declared.items() if len(kinds) > 1} == {}


def test_what_many_commands_do_is_spelled_alike() -> None:
    names = {path: {name for each in options_of(command) for name in each.opts} for path, command in COMMANDS.items()}
    assert all("--json" in found for found in names.values())
    assert all("-o" in found for path, found in names.items() if path.startswith(("play", "eval")))
    assert not any("--preset" in found for found in names.values())


@pytest.mark.parametrize("old", OLD_NAMES)
def test_the_former_name_of_a_command_is_answered_with_the_present_one(codea1: Callable[..., Any], old: str) -> None:
    result = codea1(*old.split())
    assert result.exit_code == 2
    assert "No such command" in result.stderr
    assert f"'codea1 {OLD_NAMES[old]}'" in result.stderr
    assert OLD_NAMES[old] in COMMANDS or OLD_NAMES[old] in ENTRIES


def test_the_help_has_few_names_and_fits_a_screen(codea1: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = codea1("--help").stdout
    assert len(ENTRIES) <= 17
    assert len(shown.splitlines()) <= 40
    for name, entry in ENTRIES.items():
        assert f"{name} " in shown
        assert entry.panel in shown
        assert entry.about in shown


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
    [
        ["plya"],
        ["play", "--colour"],
        ["play", "--alpha", "much"],
        ["train", "--steps", "x"],
        ["check", "plans"],
        ["rescore"],
        ["book", "merge"],
    ],
)
def test_bad_usage_is_one_sentence(codea1: Callable[..., Any], arguments: list[str]) -> None:
    result = codea1(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1


def test_a_group_without_a_command_prints_its_help(codea1: Callable[..., Any]) -> None:
    result = codea1("check")
    assert result.exit_code == 2
    assert "problems" in result.stdout


@pytest.mark.slow
def test_help_is_quick_since_it_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom codea1_agents.cli import main\nfrom codea1_agents.cli.app import all_commands, app\n"
        "all_commands()\nsys.argv = ['codea1', 'play', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'gymnasium', 'pettingzoo', 'hypothesis', 'codea1_env', 'torch', 'ray'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert done.stderr.strip() == ""
    assert "Usage: codea1 play" in done.stdout


def test_the_first_help_imports_the_options_of_no_command() -> None:
    code = (
        "import sys\nfrom codea1_agents.cli import main\nsys.argv = ['codea1', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "sys.exit(int('codea1_agents.cli.play' in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_defaults_of_the_options_are_those_of_the_modules() -> None:
    assert options.DEFAULT_SOURCE == problems.DEFAULT_SOURCE
    assert options.REPLY_TIMEOUT_S == call_thread.REPLY_TIMEOUT_S


def test_the_installed_script_is_this_command_line() -> None:
    script = Path(sys.executable).with_name("codea1")
    if not script.exists():
        pytest.skip("the project is not installed beside this Python")
    done = subprocess.run([script, "--version"], check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, f"codea1-env {version('codea1-env')}\n")
