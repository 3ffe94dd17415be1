"""The lines `next: ...` are commands; those that train nothing run as pasted."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from codea1_agents.cli.console import NEXT_STEPS
from tests.support.command_line import codea1
from tests.test_code_blocks import require_parses

FEW = "-p starter --limit 3"
SAMPLE = {"task_id": "starter/count_carries", "solution": "def count_carries(a, b): return 0", "tests": ["assert 1"]}


def pasted(*printed: object, typed: str = "") -> list[str]:
    """Run a command and each next step that it prints; return those, without the names of options' values."""
    result = codea1(*shlex.split(" ".join(map(str, printed))), typed=typed)
    assert result.exit_code == 0, result.stderr
    lines = re.findall(r"^next: (.*)$", result.stdout, re.MULTILINE)
    assert lines
    for line in lines:
        for command in line.split(" && "):
            name, *words = shlex.split(command)
            assert name == "codea1"
            done = codea1(*words, typed=typed)
            assert done.exit_code == 0, (command, done.stderr)
    return lines


@pytest.mark.parametrize("kind", ["problem", "agent", "reward"])
def test_a_template_runs_as_it_is(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(folder)
    pasted("new", kind, f"my_{kind}")
    assert codea1("new", kind, f"my_{kind}").stderr.endswith(" exists: choose another name\n")
    assert [codea1("new", kind, name).exit_code for name in ("a/b", "", "a" * 300)] == [2, 2, 2]
    assert [codea1("new", kind, name).exit_code for name in ("class", "json")] == [0 if kind == "problem" else 2] * 2


def test_a_run_is_reported_and_its_book_shown() -> None:
    assert len(pasted("play", FEW, "--episodes 3 -o", "a folder".replace(" ", "-"))) == 2


def test_a_duel_leads_to_the_next() -> None:
    pasted("demo duel", typed="assert 1\n\n" * 9)


@pytest.mark.parametrize("kind", ["coder", "tester"])
def test_an_evaluation_is_stored_and_then_compared(kind: str) -> None:
    Path("samples.jsonl").write_text(json.dumps(SAMPLE) + "\n")
    (stored,) = pasted(f"eval {kind} {FEW} --agent {'mutant' if kind == 'coder' else 'fuzz'} --seed 3")
    (compared,) = pasted(stored.removeprefix("codea1 ").replace(f"evals/{kind}", "first"))
    assert " && codea1 eval compare first-other first" in compared
    pasted(f"eval {kind} {FEW} --generations samples.jsonl -o given")


@pytest.mark.parametrize("line", [line for lines in NEXT_STEPS.values() for line in lines])
def test_each_step_is_a_command_with_its_options(line: str) -> None:
    require_parses(shlex.split(line))
