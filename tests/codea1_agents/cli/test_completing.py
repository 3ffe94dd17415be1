"""Completion, as the scripts of bash, zsh and fish call it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer._completion_classes import BashComplete, FishComplete, ZshComplete
from typer.main import get_command

from codea1_agents.cli import completing
from codea1_agents.cli.app import app
from codea1_agents.prompts.templates import EXTENSIONS, WORDINGS
from codea1_agents.train.settings.loading import preset_names
from codea1_env.plugins import names
from codea1_env.rules import ruleset


def completed(shell: str, line: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what a shell gets for a line up to the cursor."""
    words = line.split(" ")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    shells: dict[str, Any] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
    found: str = shells[shell](get_command(app), {}, "codea1", "_CODEA1_COMPLETE").complete()
    return found


def values(line: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return completed("bash", line, monkeypatch).splitlines()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("codea1 pl", "play"),
        ("codea1 eval sel", "select"),
        ("codea1 play --coder mut", "mutant"),
        ("codea1 crossplay --coders mut", "mutant"),
        ("codea1 play -p huma", "humaneval"),
        ("codea1 check problems star", "starter"),
        ("codea1 play --rules zero", "zero_sum"),
        ("codea1 play --sandbox dock", "docker"),
        ("codea1 train paper-7", "paper-7b"),
        ("codea1 sft model --prompts tin", "tiny"),
        ("codea1 list agents open", "openai"),
    ],
)
def test_every_shell_completes_names(shell: str, line: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert value in completed(shell, line, monkeypatch)


def test_the_values_are_those_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    assert values("codea1 play --tester ", monkeypatch) == list(names("agents"))
    assert values("codea1 train ", monkeypatch) == list(preset_names())
    assert values("codea1 sft m --prompts ", monkeypatch) == sorted(WORDINGS)
    assert values("codea1 sft m --prompts tiny", monkeypatch) == ["tiny", *(f"tiny{each}" for each in EXTENSIONS)]
    assert values("codea1 play --coder nobody", monkeypatch) == []
    assert sorted(completing.RULES) == sorted(ruleset.PRESETS)


def test_run_folders_are_completed_and_other_folders_are_not(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("runs/first", "runs/second", "runs/notes"):
        (folder / name).mkdir(parents=True)
    (folder / "runs/first/config.toml").touch()
    (folder / "runs/second/evaluation.json").touch()
    assert values("codea1 report ", monkeypatch) == ["runs/first", "runs/second"]
    assert values("codea1 report runs/f", monkeypatch) == ["runs/first"]
    assert values("codea1 play --resume runs/", monkeypatch) == ["runs/first", "runs/second"]


@pytest.mark.slow
def test_completion_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom codea1_agents.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'gymnasium', 'pettingzoo', 'codea1_env', 'torch', 'ray', 'transformers'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)))"
    )
    line = "codea1 play --coder mut"
    asked = {"_CODEA1_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": "3"}
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60, env=os.environ | asked
    )
    assert (done.stdout, done.stderr.strip()) == ("mutant\n", "")
