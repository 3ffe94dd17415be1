"""What a command names at its end can be typed there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codea1_agents.cli.app import all_commands
from codea1_agents.cli.next_steps import NEXT_STEPS

VALUES = {"out": "runs/first", "steps": 20, "seeds": 3, "name": "paper-cpu"}


def test_after_a_game_they_run_also_where_a_folder_has_a_space(codea1: Callable[..., Any], folder: Path) -> None:
    ended = codea1("play", "-p", "starter", "--tester", "boundary", "-n", "2", "-o", "my runs/first")
    assert ended.exit_code == 0
    commands = [line.removeprefix("next: codea1 ") for line in ended.stdout.splitlines() if line.startswith("next: ")]
    assert len(commands) == 2
    for command in commands:
        done = codea1(*shlex.split(command))
        assert (done.exit_code, done.stderr) == (0, "")
    assert (folder / "my runs" / "first.html").is_file()


def test_a_quiet_command_names_none(codea1: Callable[..., Any]) -> None:
    assert "next:" not in codea1("play", "-p", "starter", "--tester", "boundary", "-n", "1", "-q").stdout


@pytest.mark.parametrize("text", [text for texts in NEXT_STEPS.values() for text in texts])
def test_every_line_names_a_command_and_options_that_exist(text: str) -> None:
    known = all_commands()
    written = text.format_map(VALUES)
    command = re.search(r"codea1 (.*)", written)
    assert command is not None
    words = shlex.split(command[1])
    n_names = 1 if words[0] in known else 2
    name = " ".join(words[:n_names])
    if " reads" not in written:  # a sentence about the command, not the command
        known[name].make_context(name, words[n_names:])
    assert name in known
