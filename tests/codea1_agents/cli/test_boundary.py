from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
import typer
from typer.testing import CliRunner

from codea1_agents.cli.boundary import Boundary
from codea1_env.errors import BrokenInput, MissingExtra, SandboxError, UserError


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
    ("error", "code"),
    [
        (UserError("bad"), 2),
        (BrokenInput("bad"), 2),
        (MissingExtra("bad"), 2),
        (SandboxError("bad"), 3),
    ],
)
def test_an_error_made_on_purpose_is_one_sentence_and_a_code(error: Exception, code: int) -> None:
    result = CliRunner().invoke(app_that_raises(error), ["inner", "fail"])
    assert (result.exit_code, result.stdout, result.stderr) == (code, "", "error: bad\n")


def test_a_sentence_is_one_harmless_line_however_it_was_written() -> None:
    result = CliRunner().invoke(app_that_raises(UserError("row 3:\n[red]\x1b[2J " + "x" * 300)), ["inner", "fail"])
    assert result.stderr == f"error: row 3: [red]\\x1b[2J {'x' * 300}\n"


def test_an_interrupt_is_130_without_a_traceback() -> None:
    assert CliRunner().invoke(app_that_raises(KeyboardInterrupt()), ["inner", "fail"]).exit_code == 130


def test_an_error_nobody_expected_keeps_its_traceback(
    finished: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    code = (
        "import codea1_agents.cli.checking as c\ndef f(*a, **k): raise ZeroDivisionError('ours')\nc.load_problems = f"
    )
    done = finished("check", "problems", "starter", code=code)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "ZeroDivisionError: ours" in done.stderr
