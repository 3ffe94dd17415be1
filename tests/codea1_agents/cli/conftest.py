"""The command line, called in this process or in one of its own, always in an empty folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codea1_env.sandbox import Guarantee
from codea1_env.sandbox.local import LocalSandbox
from tests.support import command_line

AGENTS = """\
import os
import sys
import time


def slow_tester(observation):
    time.sleep(0.1)
    return observation["examples"]


def forgetful(observation):
    raise KeyError("memory lost")


def silent(observation):
    return None


def quits(observation):
    raise SystemExit(3)


async def later(observation):
    return observation["examples"]


def chatty(observation):
    print("I think aloud")
    sys.__stdout__.write("and go around\\n")
    os.write(1, b"or write to the descriptor\\n")
    return observation["examples"]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, empty but for a module with agents."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    # Every command closes its sandbox when it is done; here the next command of this process needs it again.
    monkeypatch.setattr(LocalSandbox, "close", lambda self: None)
    # Where the kernel refuses namespaces, every command would warn of a weak sandbox.
    monkeypatch.setattr(LocalSandbox, "guarantee", Guarantee.ISOLATED)
    (tmp_path / "my_agents.py").write_text(AGENTS)
    return tmp_path


@pytest.fixture
def run(played: Path, folder: Path) -> Path:
    """A copy of the run folder that the module's fixture `played` gives."""
    shutil.copytree(played, folder / "run")
    return Path("run")


@pytest.fixture
def codea1() -> Callable[..., Any]:
    """Run a command in this process; the result has exit_code, stdout, stderr."""
    return command_line.codea1


@pytest.fixture
def started() -> Callable[..., subprocess.Popen[str]]:
    """Start a command in a process of its own, as the installed script does."""

    def start(*arguments: object, code: str = "", **options: Any) -> subprocess.Popen[str]:
        script = f"{code}\nfrom codea1_agents.cli import main\nmain()"
        command = [sys.executable, "-c", script, *map(str, arguments)]
        environment = {**os.environ, **options.pop("env", {})}
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, **options
        )

    return start


@pytest.fixture
def finished(started: Callable[..., subprocess.Popen[str]]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command in a process of its own to its end."""

    def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        process = started(*arguments, **options)
        out, err = process.communicate(timeout=120)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    return run


@pytest.fixture(scope="session")
def one_object() -> Callable[[str], dict[str, Any]]:
    """Read stdout that must hold exactly one JSON object on one line."""

    def read(stdout: str) -> dict[str, Any]:
        assert stdout.count("\n") == 1
        data = json.loads(stdout)
        assert isinstance(data, dict)
        return data

    return read


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Run a `codea1 play ...` and return its run folder."""

    def play(arguments: str) -> Path:
        path = tmp_path_factory.mktemp("played") / "run"
        assert command_line.codea1(*arguments.split(), "--out", path).exit_code == 0
        return path

    return play
