from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from pkgutil import resolve_name
from types import NoneType
from typing import Annotated, Any, get_args, get_type_hints

import pytest
from typer import Option

from codea1_agents.cli import entries
from codea1_agents.cli.app import ENTRIES
from codea1_agents.cli.entries import Entry
from tests.support.command_line import codea1, refused
from tests.support.commands import all_bodies, all_commands

COMMANDS = all_commands()
BODIES = all_bodies()
MEANINGS = {
    "-p": {"--problems"},
    "-n": {"--episodes", "--samples", "--candidates", "--top"},
    "-m": {"--suites"},
    "-o": {"--out"},
    "-q": {"--quiet"},
}
"""The meaning of each letter: the options that it stands for."""


@dataclass(frozen=True)
class Point:
    """An entry point whose package has these commands, or cannot be imported."""

    value: str
    commands: Mapping[str, Entry] | Exception
    name: str = "other"

    def load(self) -> Mapping[str, Entry]:
        if isinstance(self.commands, Exception):
            raise self.commands
        return self.commands


def options_of(command: Any) -> list[Any]:
    return [each for each in command.params if each.param_type_name == "option"]


_OUTPUTS = {"--out", "--save", "--pictures", "--results"}


def test_an_output_that_cannot_be_written_is_refused_before_anything_else(folder: Path) -> None:
    (folder / "file").write_text("x")
    before = sorted(folder.rglob("*"))
    asked = [(path, name) for path, command in COMMANDS.items() for each in options_of(command) for name in each.opts]
    asked = [(path, name) for path, name in asked if name in _OUTPUTS]
    assert len(asked) >= 16
    for path, name in asked:
        wrong = "." if name == "--save" or (path in {"report", "export tests"} and name == "--out") else "file"
        for place in ("file/x", "a" * 300, "y/" + "a" * 300, "/proc/x", "/dev/null/x", wrong):
            assert "cannot be written" in refused(*path.split(), f"{name}={place}"), (path, name)
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(
    ("words", "file"),
    [
        ("export tests --agent boundary -p {} -o {}", "my.jsonl"),
        ("export tests --agent boundary -p ./{} --coder mutant -o link.jsonl", "my.jsonl"),
        ("export tests --agent mine:A,seen={} -o {}", "seen.txt"),
        ("game solve {} --save {}", "my.bank.jsonl"),
        ("report run -o {}", "run/metrics.jsonl"),
    ],
)
def test_a_file_that_a_command_reads_is_not_written(folder: Path, words: str, file: str) -> None:
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).write_text("mine")
    (folder / "link.jsonl").symlink_to(folder / file)
    before = sorted(folder.rglob("*"))
    told = refused(*words.replace("{}", file).split())
    assert (
        "expected another file to write, got one that this command reads" in told
        or "only a file whose name ends in .html" in told
    )
    assert (sorted(folder.rglob("*")), (folder / file).read_text()) == (before, "mine")


@pytest.mark.parametrize(
    "words",
    [
        *(
            f"play -p starter -n 1 --sandbox {name}"
            for name in ("os:system", "sys:exit", "os:getcwd", "builtins:input")
        ),
        *("play -p starter -n 1 --coder builtins:dict", "play -p starter -n 1 --tester builtins:type"),
        *(
            "check problems hf:",
            "check problems itertools:count",
            "check problems os:system",
        ),
        *(f"{line} {'a' * 5000}" for line in ("check model", "crossplay -p starter --limit 1 --testers fuzz --coders")),
        *("serve --grace inf", "pretrain --aware nan"),
    ],
)
def test_a_name_that_cannot_be_meant_is_one_sentence(folder: Path, words: str) -> None:
    assert refused(*words.split())


def test_a_configuration_without_a_name_is_none(folder: Path) -> None:
    assert "name a TOML file" in refused("train", "--dry-run", "")


def test_a_letter_has_one_meaning_and_a_name_one_declaration_in_all_commands() -> None:
    letters: dict[str, set[str]] = {}
    declared: dict[str, set[tuple[Any, ...]]] = {}
    for path, command in COMMANDS.items():
        hints = get_type_hints(get_type_hints(resolve_name(BODIES[path]))["options"])
        for option in options_of(command):
            *short, name = sorted(option.opts, key=len)
            for letter in short:
                letters.setdefault(letter, set()).add(name)
            kind = frozenset(get_args(hints[option.name]) or (hints[option.name],)) - {NoneType}
            declared.setdefault(name, set()).add((*short, *option.secondary_opts, kind))
    assert letters == MEANINGS
    assert {name: kinds for name, kinds in declared.items() if len(kinds) > 1} == {}


def test_what_many_commands_do_is_spelled_alike_a_group_has_a_help_and_the_whole_a_version() -> None:
    names = {path: {name for each in options_of(command) for name in each.opts} for path, command in COMMANDS.items()}
    assert all("--json" in found for found in names.values())
    assert all("-o" in names[path] for path in ("play", "eval coder", "eval tester", "eval select"))
    assert not any("--preset" in found for found in names.values())
    result = codea1("check")
    assert result.exit_code == 2
    assert "problems" in result.stdout
    assert codea1("--version").stdout == f"codea1-env {version('codea1-env')}\n"


def test_the_help_has_few_names_fits_a_screen_and_tells_defaults_of_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = codea1("--help").stdout
    assert len(ENTRIES) <= 21
    assert len(shown.splitlines()) <= 45
    for name, entry in ENTRIES.items():
        assert f"{name} " in shown
        assert entry.panel in shown
        assert entry.about in shown
    monkeypatch.setenv("COLUMNS", "200")
    shown = codea1("crossplay", "--help").stdout
    assert "Seed of the agents and the intervals. [default: 0]" in shown
    assert "as fixed references. [default: yes]" in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example_to_copy(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = codea1(*command.split(), "--help")
    assert result.exit_code == 0
    assert f"codea1 {command} " in result.stdout.replace("\n", " ")
    examples = get_type_hints(resolve_name(BODIES[command]))["options"].__doc__.partition("Example:\n")[2]
    assert examples
    for line in filter(None, map(str.strip, examples.splitlines())):
        assert line in result.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_types_and_defaults_have_one_style_in_every_help(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    shown = codea1(*command.split(), "--help").stdout
    assert not re.search(r"`|<\w+|list\[|Path\b|default: [(\[']|default: (True|False|None)", shown)
    kinds = set(re.findall(r"(?m)^│ \*? *-[-\w]+ +(?:-[-\w]+ +)?([A-Z=]+) ", shown))
    # Rules have names, trainings are presets; `preset(NAME)` is Python's name for rules.
    if not command.startswith(("train", "list presets", "demo coevolve")):
        assert "preset" not in shown.replace("preset(NAME)", "")
    assert kinds <= {"TEXT", "PATH", "INTEGER", "FLOAT", "KEY=VALUE", "NAME"}


@pytest.mark.parametrize(
    "line", ["plya", "play --colour", "play --alpha much", "train --steps x", "check plans", "grade", "book merge"]
)
def test_bad_usage_is_one_sentence(line: str) -> None:
    refused(*line.split())


def test_another_package_adds_commands_if_it_can_be_imported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    added = {
        "dance": Entry("Play", "Dance.", "my_dance:dance"),
        "book": Entry("Look", "Burn.", {"burn": "my_dance:burn", "show": "my_dance:show"}),
        "play": Entry("Play", "Play otherwise.", "my_dance:play"),
    }
    monkeypatch.setattr(entries, "entry_points", lambda group: [Point("later", added)])
    found = entries.with_extensions({name: ENTRIES[name] for name in ("play", "book")})
    assert list(found) == ["play", "book", "dance"]
    assert found["play"] == ENTRIES["play"]
    assert found["book"].commands == {**ENTRIES["book"].commands, "burn": "my_dance:burn"}
    monkeypatch.setattr(entries, "entry_points", lambda group: [Point("broken", ImportError("no module my_dance"))])
    assert entries.with_extensions({}) == {}
    assert capsys.readouterr().err == "warning: the commands of broken are left out: no module my_dance\n"


@dataclass(frozen=True)
class Foreign:
    """Declares options as another package may."""

    steps: Annotated[int, Option(), "a remark"] = 3
    words: Annotated[str, "a remark"] = "none"


def foreign(options: Foreign) -> None: ...


def test_another_package_may_annotate_its_options_with_more_than_declarations() -> None:
    command = Entry("Play", "Dance.", f"{__name__}:foreign").load("dance")
    assert [each.help for each in command.params] == ["[dim]\\[default: 3][/dim]", None]


def test_the_installed_script_is_this_command_line() -> None:
    script = Path(sys.executable).with_name("codea1")
    if not script.exists():
        pytest.skip("the project is not installed beside this Python")
    done = subprocess.run([script, "--version"], check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, f"codea1-env {version('codea1-env')}\n")
