"""Problems of the project's tests that are not one pure function with one right answer, and programs for them."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from codea1_env.facts.submissions import Candidate
from codea1_env.facts.verdicts import CandidateReport, Verdict
from codea1_env.judging.judge import Duel, Judge
from codea1_env.problems import Problem
from codea1_env.problems.layouts import read_row
from codea1_env.rules.replies import read_suite
from codea1_env.rules.ruleset import Ruleset, preset
from codea1_env.sandbox import Limits, Sandbox
from tests.support.toys import fenced

FIXED = preset("fixed")
_STYLES = (
    "{program}",
    "{program}\n_inner = {name}\n\ndef {name}(*args, **kwargs):\n    return _inner(*args, **kwargs)\n",
    "{program}\n_inner = {name}\n{name} = lambda *args, **kwargs: _inner(*args, **kwargs)\n",
    "{program}\n_inner = {name}\n\nclass Solver:\n    def __call__(self, *args, **kwargs):\n"
    "        return _inner(*args, **kwargs)\n\n{name} = Solver()\n",
    "import functools\n{program}\n\ndef plain(function):\n    @functools.wraps(function)\n"
    "    def called(*args, **kwargs):\n        return function(*args, **kwargs)\n    return called\n\n"
    "{name} = plain({name})\n",
)


@dataclass(frozen=True)
class Example:
    """One problem with right programs in several styles; the wrong ones are in `problem.wrong_programs`."""

    problem: Problem
    other: str
    """A right program whose answers or ways differ from the solution's."""
    golden: tuple[str, ...]
    """The golden tests as text."""

    @property
    def right(self) -> list[str]:
        """The other program in five styles."""
        name = self.problem.entry_point
        return [style.format(program=self.other, name=name) for style in _STYLES]


def examples_of(path: Path) -> list[Example]:
    rows = tomllib.loads(path.read_text("utf-8"))["problem"]
    return [_example(row) for row in rows]


def each_of(*tables: Sequence[Example]) -> pytest.MarkDecorator:
    """Run a test with each example; all but the first three of a table are slow."""
    found = [(each, [pytest.mark.slow] * (n >= 3)) for table in tables for n, each in enumerate(table)]
    examples = [pytest.param(each, id=each.problem.id, marks=marks) for each, marks in found]
    return pytest.mark.parametrize("example", examples)


def _example(row: dict[str, object]) -> Example:
    other, wrong = str(row.pop("other")), row.pop("wrong")
    assert isinstance(wrong, list)
    notes = [{"program": program, "note": f"wrong program {n}", "subtlety": 2} for n, program in enumerate(wrong)]
    golden = row["golden"]
    assert isinstance(golden, list)
    return Example(read_row(row | {"wrong_programs": notes}), other, tuple(golden))


def judged(
    sandbox: Sandbox,
    problem: Problem,
    programs: Sequence[str],
    tests: Sequence[str],
    limits: Limits | None = None,
    rules: Ruleset = FIXED,
    golden: bool | None = None,
) -> list[CandidateReport]:
    """Judge programs by one suite per test, so that none counts as a duplicate."""
    about = {"entry_point": problem.entry_point, "forms": problem.calls}
    suites = [read_suite(fenced(text), rules.reading, **about) for text in tests]
    duel = Duel.crossed(problem, [Candidate(program) for program in programs], suites)
    return list(Judge(sandbox, rules, limits=limits, golden=golden).judge([duel])[0].candidates)


def verdicts(report: CandidateReport) -> list[Verdict]:
    return [case.verdict for suite in report.suites for case in suite.cases]


def passed_in_python(programs: Sequence[str], tests: Sequence[str]) -> list[list[bool]]:
    """Whether each program passes each test in plain Python, each time in a fork of its own."""
    given = json.dumps([f"{program}\n{test}" for program in programs for test in tests])
    command = [sys.executable, "-I", "-c", _EACH]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    passed: list[bool] = json.loads(done.stdout.splitlines()[-1])
    return [passed[start : start + len(tests)] for start in range(0, len(passed), len(tests))]


_EACH = """
import json, os, sys

passed = []
for text in json.load(sys.stdin):
    process = os.fork()
    if process == 0:
        exec(text, {"__name__": "__main__"})
        os._exit(0)
    passed.append(os.waitpid(process, 0)[1] == 0)
print(json.dumps(passed))
"""
