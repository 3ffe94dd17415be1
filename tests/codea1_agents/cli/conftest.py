"""The command line, called in this process or in one of its own, always in an empty folder."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codea1_agents.cli import progress
from codea1_env.agent import Observation
from codea1_env.sandbox import Guarantee, Job, JobReport
from codea1_env.sandbox.local import LocalSandbox
from tests.support.command_line import codea1
from tests.support.waiting import wait_until

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
    monkeypatch.setattr(progress, "_FIRST_LINE_S", 1e6)  # on a busy machine, any phase may last a second
    # Every command closes its sandbox when it is done; here the next command of this process needs it again.
    monkeypatch.setattr(LocalSandbox, "close", lambda self: None)
    # Where the kernel refuses namespaces, every command would warn of a weak sandbox.
    monkeypatch.setattr(LocalSandbox, "guarantee", Guarantee.ISOLATED)
    (tmp_path / "my_agents.py").write_text(AGENTS)
    return tmp_path


@pytest.fixture
def phases(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """Let every phase print its plain line at once; return what reads their names in the order of the lines."""
    begin = progress.Progress.begin

    def told(self: progress.Progress, what: str, *arguments: Any, **options: Any) -> None:
        begin(self, what, *arguments, **options)
        self.rest(0.0)
        self.tell()

    monkeypatch.setattr(progress.Progress, "begin", told)
    return lambda stderr: list(dict.fromkeys(re.findall(r"^note: (.*), elapsed 0:0\d$", stderr, re.MULTILINE)))


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What progress lines wait for, noted by the agents `watched:coder`, `watched:tester`, and while programs run."""
    found, bars, enter, run = list[str](), list[progress.Progress](), progress.Progress.__enter__, LocalSandbox.run

    def noted() -> bool:
        told = re.search(r"; waiting 0:00 for (.+)$", bars[-1].line())
        found.extend(told.groups() if told else ())
        return told is not None

    def entered(self: progress.Progress) -> progress.Progress:
        bars.append(self)
        return enter(self)

    def watched_run(self: LocalSandbox, jobs: Sequence[Job]) -> list[JobReport]:
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(run, self, jobs)
            wait_until(lambda: noted() or done.done(), 60.0)
            return done.result()

    def coder(observation: Observation) -> str:
        noted()
        return f"import time\ntime.sleep(0.3)\ndef {observation['entry_point']}(*arguments):\n    return None\n"

    def tester(observation: Observation) -> str:
        noted()
        return observation["examples"]

    monkeypatch.setattr(progress, "_LONG_S", 0.0)
    monkeypatch.setattr(progress.Progress, "__enter__", entered)
    monkeypatch.setattr(LocalSandbox, "run", watched_run)
    monkeypatch.setitem(sys.modules, "watched", SimpleNamespace(coder=coder, tester=tester))
    return found


@pytest.fixture
def run(played: Path, folder: Path) -> Path:
    """A copy of the run folder that the module's fixture `played` gives."""
    shutil.copytree(played, folder / "run")
    return Path("run")


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Run a `codea1 play ...` and return its run folder."""

    def play(arguments: str) -> Path:
        path = tmp_path_factory.mktemp("played") / "run"
        assert codea1(*arguments.split(), "--out", path).exit_code == 0
        return path

    return play
