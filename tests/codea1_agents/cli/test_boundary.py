from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from codea1_agents.cli.boundary import Boundary
from codea1_env.errors import BrokenInput, MissingExtra, SandboxError, UserError
from tests.support.command_line import codea1, finished, started
from tests.support.processes import command_of, descendants
from tests.support.waiting import wait_until


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


MINE = """\
import pathlib, time


def tester(observation):
    pathlib.Path("asked").touch()
    time.sleep(0.05)
    return observation["examples"]
"""
AT_WORK = {
    "play": ["--tester", "mine:tester", "-n", 500],
    "play --concurrency 4": ["--tester", "mine:tester", "-n", 500],
    "eval tester": ["--agent", "mine:tester"],
    "eval select": ["--coder", "mutant", "--tester", "mine:tester"],
    "export tests": ["--agent", "mine:tester", "-o", "tests.jsonl"],
    "crossplay": ["mine:tester", "mutant", "-o", "crossed"],
    "advise": ["--coder", "mutant", "--tester", "mine:tester"],
}


def ignore_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@pytest.mark.slow
@pytest.mark.parametrize("in_background", [False, True], ids=["", "background"])
@pytest.mark.parametrize("command", AT_WORK)
def test_sigterm_ends_a_command_as_ctrl_c_does_and_leaves_nothing(command, in_background, folder, tmp_path_factory):
    """A shell's background job ignores Ctrl-C, but not SIGTERM."""
    (folder / "mine.py").write_text(MINE)
    scratch = tmp_path_factory.mktemp("scratch")
    words = [*command.split(), "-p", "starter", *AT_WORK[command]]
    before = ignore_ctrl_c if in_background else None
    process = started(*words, env={"TMPDIR": str(scratch)}, preexec_fn=before, start_new_session=True)
    assert wait_until((folder / "asked").exists, 60.0)
    left = {pid: command_of(pid) for pid in descendants(process.pid)}
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "interrupted" in err
    assert "Traceback" not in err
    assert wait_until(lambda: not any(text and command_of(pid) == text for pid, text in left.items()))
    assert list(scratch.iterdir()) == []
    assert not (folder / "tests.jsonl").exists()


@pytest.mark.parametrize("module", ["codea1_agents.cli.app", "codea1_env.plugins"])
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_before_a_command_begins_ends_it_in_one_line(name: str, module: str) -> None:
    at_import = f"""
import os, signal, sys
class Sender:
    def find_spec(self, name, *_):
        if name == "{module}":
            del sys.meta_path[0]
            os.kill(os.getpid(), signal.{name})
sys.meta_path.insert(0, Sender())
"""
    process = started("list", "rewards", code=at_import)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "error: interrupted\n")


def test_sigterm_after_a_command_has_ended_stops_no_cleanup() -> None:
    at_exit = (
        "import atexit, os, signal\n@atexit.register\ndef end():\n    os.kill(os.getpid(), 15)\n    print('cleaned')"
    )
    done = finished("--version", code=at_exit)
    assert (done.returncode, done.stdout.splitlines()[1:], done.stderr) == (0, ["cleaned"], "")
