"""Completion of values, as the script of bash calls it."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer._completion_classes import BashComplete
from typer.main import get_command

from codea1_agents.cli.app import app
from codea1_agents.prompts.templates import EXTENSIONS, WORDINGS
from codea1_agents.train.settings.loading import preset_names
from codea1_env.plugins import names
from codea1_env.rules import ruleset


def values(line: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what the shell gets for a line up to the cursor."""
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    found: str = BashComplete(get_command(app), {}, "codea1", "_CODEA1_COMPLETE").complete()
    return found.splitlines()


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("codea1 pl", "play"),
        ("codea1 book hist", "history"),
        ("codea1 play --coder mut", "mutant"),
        ("codea1 play -p huma", "humaneval"),
        ("codea1 play --rules zero", "zero_sum"),
        ("codea1 play --sandbox dock", "docker"),
        ("codea1 train paper-7", "paper-7b"),
    ],
)
def test_names_are_completed(line: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert value in values(line, monkeypatch)


def test_the_values_are_those_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    assert values("codea1 play --tester ", monkeypatch) == list(names("agents"))
    assert values("codea1 train ", monkeypatch) == list(preset_names())
    assert values("codea1 sft m --prompts ", monkeypatch) == sorted(WORDINGS)
    assert values("codea1 sft m --prompts tiny", monkeypatch) == ["tiny", *(f"tiny{each}" for each in EXTENSIONS)]
    assert values("codea1 play --coder nobody", monkeypatch) == []
    assert set(ruleset.PRESETS) <= set(values("codea1 play --rules ", monkeypatch))


def test_run_folders_are_completed_and_other_folders_are_not(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("runs/first", "runs/second", "runs/notes"):
        (folder / name).mkdir(parents=True)
    (folder / "runs/first/config.toml").touch()
    (folder / "runs/second/evaluation.json").touch()
    assert values("codea1 report ", monkeypatch) == ["runs/first", "runs/second"]
    assert values("codea1 report runs/f", monkeypatch) == ["runs/first"]
    assert values("codea1 play --resume runs/", monkeypatch) == ["runs/first", "runs/second"]
