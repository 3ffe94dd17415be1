from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from codea1_agents.cli.boundary import Boundary
from codea1_env.errors import BrokenInput, MissingExtra, SandboxError, UserError
from tests.support.command_line import codea1, finished, started


def app_that_raises(error: BaseException) -> typer.Typer:
    app = typer.Typer(cls=Boundary)
    inner = typer.Typer()

    @inner.command()
    def fail() -> None:
        raise error

    @inner.callback()
    def group() -> None: ...

    app.add_typer(inner, name="inner")
    return app


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        *((kind("bad"), 2, "bad") for kind in (UserError, BrokenInput, MissingExtra)),
        (SandboxError("bad"), 3, "bad"),
        (UserError("row 3:\n[red]\x1b[2J " + "x" * 300), 2, f"row 3: [red]\\x1b[2J {'x' * 300}"),  # harmless
        (KeyboardInterrupt(), 130, "interrupted"),
        (OSError(36, "File name too long", "aaa"), 2, "aaa: File name too long"),
    ],
)
def test_an_error_made_on_purpose_is_one_line_and_a_code(error: BaseException, code: int, said: str) -> None:
    result = CliRunner().invoke(app_that_raises(error), ["inner", "fail"])
    assert (result.exit_code, result.stdout, result.stderr) == (code, "", f"error: {said}\n")


FAULTY = """\
import json

def parses(observation):
    return read(observation["problem"])

def read(text):
    return json.loads("{" + text)
"""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("play", "-p", "starter", "-n", 1, "--coder"), 2),
        (("check", "agent", "--role", "coder"), 1),
        (("eval", "coder", "-p", "starter", "--limit", 1, "--agent"), 2),
        (("crossplay", "-p", "starter", "--limit", 1, "--testers", "examples", "--coders"), 2),
    ],
    ids=["play", "check agent", "eval coder", "crossplay"],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_the_traceback_of_an_agents_error_is_shown_if_wanted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: int, is_first: bool
) -> None:
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "faulty", raising=False)
    (folder / "faulty.py").write_text(FAULTY)
    command = *arguments, "faulty:parses"
    result = codea1("--traceback", *command) if is_first else codea1(*command, "--traceback")
    assert result.exit_code == code
    assert f'File "{folder / "faulty.py"}", line 7, in read' in result.stderr
    assert "json/decoder.py" in result.stderr
    if is_first:
        plain = codea1(*command)
        assert "Traceback" not in plain.stderr
        assert "faulty.py:7)" in "".join((plain.stdout + plain.stderr).split())


@pytest.mark.slow
def test_an_error_nobody_expected_keeps_its_traceback() -> None:
    code = "import codea1_agents.cli.check as c\ndef f(*a, **k): raise ZeroDivisionError('ours')\nc.load_problems = f"
    done = finished("check", "problems", "starter", code=code)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "ZeroDivisionError: ours" in done.stderr


# -- where results cannot go --

PLAY = ["play", "-p", "starter", "--tester", "boundary", "-n", "1", "--out", "run"]


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["list", "agents"], PLAY, ["--help"], ["--version"], ["play", "--help"]])
def test_who_stops_reading_hears_nothing(arguments: list[str]) -> None:
    process = started(*arguments, *(["--quiet"] if arguments == PLAY else ()))
    process.stdout.close()
    assert (process.wait(timeout=60), process.stderr.read()) == (141, "")
    process.stderr.close()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    "arguments", [["list", "agents"], ["list", "agents", "--json"], PLAY, ["--help"], ["--version"]]
)
def test_a_full_disk_behind_stdout_is_one_sentence(arguments: list[str]) -> None:
    command = [sys.executable, "-c", "from codea1_agents.cli import main\nmain()", *arguments]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False, env={**os.environ}
        )
    assert done.returncode == 2, done.stderr
    assert re.fullmatch(
        r"error: cannot write( to standard output)?: No space left on device", done.stderr.splitlines()[-1]
    )
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
