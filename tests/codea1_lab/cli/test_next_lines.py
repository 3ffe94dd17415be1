"""The lines `next: ...` are commands; those that train nothing run as pasted."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from codea1_agents.cli.console import NEXT_STEPS
from codea1_agents.cli.new import template
from codea1_lab.cli import web
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
            done = codea1(*words, *(["--port", "0"] if words[0] == "web" else []), typed=typed)
            assert done.exit_code == 0, (command, done.stderr)
    return lines


@pytest.mark.parametrize("kind", ["problem", "agent", "reward"])
def test_a_template_runs_as_it_is(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(folder)
    pasted("new", kind, f"my_{kind}")
    assert codea1("new", kind, f"my_{kind}").stderr.endswith(" exists: choose another name\n")
    assert [codea1("new", kind, name).exit_code for name in ("a/b", "", "a" * 300)] == [2, 2, 2]
    assert [codea1("new", kind, name).exit_code for name in ("class", "json", "numpy")] == [
        0 if kind == "problem" else 2
    ] * 3


def test_the_tester_of_the_template_earns_something(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(folder)
    codea1("new", "agent", "my_first_agents")
    played = codea1("play", "-p", "starter", "--tester", "my_first_agents:tester", "-n", 12, "--json")
    assert json.loads(played.stdout)["figures"]["tester_reward"]["mean"] > 0.02


@pytest.mark.parametrize(
    ("name", "problem", "program", "call"),
    [
        ("f", "def f(x):\n    ...", "", "f(1)"),
        ("f", "", "def f(x, y = 2): return x", "f(1, 1)"),
        ("f", "def f(table: Dict[str, List[int]], n: int) -> Tuple[int, int]:", "", "f(1, 1)"),
        ("S().f", "class S:\n    def f(self, a,\n          b):", "", "S().f(1, 1)"),
        ("f", "def f():", "", "f()"),
        ("run", "Print the sum.", "print(1)", "run('1')"),
    ],
)
def test_without_examples_the_tester_gives_each_parameter_a_number(
    name: str, problem: str, program: str, call: str
) -> None:
    module: dict[str, Any] = {}
    exec(template("agent"), module)
    observation = {"entry_point": name, "problem": problem, "program": program, "examples": ""}
    assert module["tester"](observation) == f"assert {call} is not None"


def test_runs_lead_to_their_report_their_book_and_the_page_that_shows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fastapi", reason="fastapi is not installed")
    monkeypatch.setattr(web, "wait_for_interrupt", lambda: None)
    for folder in ("my runs/a", "my runs/b", "other/c"):
        assert codea1("play", *FEW.split(), "-n", 1, "-o", folder).exit_code == 0
    assert len(pasted("play", FEW, "--episodes 3 -o 'a folder'")) == 2
    assert pasted("report 'my runs/a' 'my runs/b'") == ["codea1 web 'my runs'"]
    both = ["codea1 web 'my runs'", "codea1 web other"]
    assert pasted(f"report '{Path('my runs/b').resolve()}' 'my runs/a' other/c") == both


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("coder", "--agent mutant --seed 3"),
        ("coder", "--agent mutant,strength=0.3 --samples 2 --without starter/count_carries"),
        ("tester", "--agent fuzz --seed 3"),
        ("tester", "--agent boundary --mode suite --tests 3 --mutants 2"),
    ],
)
def test_an_evaluation_is_stored_and_then_compared(kind: str, options: str) -> None:
    Path("samples.jsonl").write_text(json.dumps(SAMPLE) + "\n")
    (stored,) = pasted(f"eval {kind} {FEW} {options}")
    (compared,) = pasted(stored.removeprefix("codea1 ").replace(f"evals/{kind}", "first"))
    assert " && codea1 eval compare first-other first" in compared
    pasted(f"eval {kind} {FEW} --generations samples.jsonl -o given")


@pytest.mark.parametrize("line", [line for lines in NEXT_STEPS.values() for line in lines])
def test_each_step_is_a_command_with_its_options(line: str) -> None:
    require_parses(shlex.split(line))


def test_a_duel_leads_to_the_next_and_what_ends_without_a_next_step_is_known() -> None:
    assert pasted("demo duel", typed="assert 1\n\n" * 9)
    Path("program.py").write_text(str(SAMPLE["solution"]))
    Path("tests.py").write_text("assert count_carries(5, 5) == 1")
    for words in (
        "grade program.py tests.py --problem starter/count_carries -p starter",
        f"eval select --coder mutant --tester boundary {FEW} -n 2 -m 2",
        f"check problems {FEW.removeprefix('-p ')}",
        f"export tests --agent boundary {FEW} -o tests.jsonl",
    ):
        result = codea1(*words.split())
        assert (result.exit_code, "next: " in result.stdout) == (0, False), result.stderr
