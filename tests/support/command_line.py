"""The command line called in this process, a short run of it, and what it leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from codea1_agents.cli.app import app
from codea1_env.book.store import MistakeBook, StoredEntry

FAST = ["play", "-p", "starter", "--coder", "mutant,strength=0.9", "--tester", "boundary", "--limit", "3"]
"""Three problems, so that most episodes replay cases of earlier ones."""

DOCUMENTS: dict[str, Any] = json.loads(files("codea1_agents.cli").joinpath("documents.json").read_text("utf-8"))


def codea1(*arguments: object, typed: str = "") -> Any:
    """Run a command in this process, with what a person types; the result has exit_code, stdout and stderr.

    The document that a command with `--json` prints is checked against its schema.
    """
    words = [str(argument) for argument in arguments]
    result = CliRunner().invoke(app, words, prog_name="codea1", input=typed or None)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if "--json" in words and result.stdout:
        check_document(words, result.stdout)
    return result


def document(*arguments: object) -> dict[str, Any]:
    """Run a command with `--json`, which must succeed; return the object that it prints."""
    result = codea1(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return one_object(result.stdout)


def refused(*arguments: object) -> str:
    """Run a command that is refused as bad input, before it has printed anything; return the one line that it says."""
    result = codea1(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    return str(result.stderr)


def started(*arguments: object, code: str = "", **options: Any) -> subprocess.Popen[str]:
    """Start a command in a process of its own, as the installed script does."""
    script = f"{code}\nfrom codea1_agents.cli import main\nmain()"
    environment = {**os.environ, **options.pop("env", {})}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", script, *map(str, arguments)], env=environment, **pipes, **options)


def finished(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    process = started(*arguments, **options)
    out, err = process.communicate(timeout=120)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def one_object(stdout: str) -> dict[str, Any]:
    """Read stdout that must hold exactly one JSON object on one line."""
    assert stdout.count("\n") == 1
    data = json.loads(stdout)
    assert isinstance(data, dict)
    return data


def run_python(*arguments: object, folder: Path, **environment: str) -> str:
    """Run Python with one thread and without the hub, as an example or a page does; return what it prints."""
    command, settings = [sys.executable, *map(str, arguments)], {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    place = {"cwd": folder, "env": os.environ | settings | environment}
    done = subprocess.run(command, **place, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_document(words: list[str], stdout: str) -> None:
    """Check what a command printed with `--json` against its schema in `documents.json`."""
    command = next(name for n in (3, 2, 1) if (name := " ".join(words[:n])) in DOCUMENTS["$defs"])
    found = json.loads(stdout)
    assert [error.message for error in validator(command).iter_errors(found)] == []
    assert found.keys() - DOCUMENTS["$defs"][command]["properties"].keys() <= {"kind", "schema_version"}


@cache
def validator(command: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/$defs/{command}", "$defs": DOCUMENTS["$defs"]})


def entries_of(run: Path) -> list[StoredEntry]:
    with MistakeBook(run / "book.sqlite", create=False) as book:
        return list(book.entries())
