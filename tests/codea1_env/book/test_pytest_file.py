"""The exported pytest file, run under pytest against right, wrong and missing programs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from codea1_env import values
from codea1_env.book.pytest_file import export_pytest
from codea1_env.book.store import StoredEntry
from codea1_env.facts.answers import AnswerRules
from codea1_env.facts.problem_kinds import ProblemKind
from codea1_env.problems import Problem, ProblemSet, load_problems
from tests.support.books import entry, filled, identity

PROBLEMS = ProblemSet(
    "toys", (identity("toy/f", "f", "import math"), identity("toy f", "g"), identity("unplayed", "h"))
)


def run_text(file: Path, candidates: Path | None = None) -> str:
    """Run a file in a process of its own; return what pytest says."""
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    if candidates is not None:
        environment["CANDIDATES"] = str(candidates)
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", file.name]
    done = subprocess.run(
        command, cwd=file.parent, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout


def run_pytest(file: Path, candidates: Path | None = None) -> dict[str, int]:
    """Return how many tests passed, failed, were skipped."""
    words = run_text(file, candidates).splitlines()[-1].replace(",", "").split()
    return {word: int(n) for n, word in pairwise(words) if word in ("passed", "failed", "skipped")}


@pytest.mark.slow
def test_the_pytest_file_runs_against_right_and_wrong_programs(tmp_path):
    same = [
        1,
        'it\'s "so"\n',
        [1, (2.0000000001,)],
        {"a": {1}},
        float("nan"),
        Decimal("1.5"),
        np.arange(4).reshape(2, 2),
    ]
    cases = [entry("f(1)", 1), *(entry(f"f({values.to_source(values.encode(v)).expression})", v) for v in same[1:5])]
    cases += [
        entry("f(Decimal('1.5'))", same[5], 1, "from decimal import Decimal"),
        entry("f(numpy.arange(4).reshape(2, 2))", same[6], 1, "import numpy"),
        entry("f(2) if True else 0", 2),
    ]
    suite = tmp_path / "test_book.py"
    with filled(*cases, problem_id="toy/f") as book:
        book.absorb([StoredEntry("toy f", entry("g(1)", 1)), StoredEntry("elsewhere", entry("f(1)", 1))], {})
        report = export_pytest(book, suite, PROBLEMS)
    assert report.written == len(cases) + 1
    assert [(one.place, one.reason) for one in report.skipped] == [("elsewhere", "not a problem of toys; 1 entries")]
    assert "toy_f.py defines f" in suite.read_text()
    assert "toy_f_2.py defines g" in suite.read_text()
    for folder, program in (("right", "return math.floor(0) or x"), ("wrong", "return [x]")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "toy_f.py").write_text(f"def f(x): {program}\n")
    (tmp_path / "right").rename(tmp_path / "candidates")
    assert run_pytest(suite) == {"passed": len(cases), "skipped": 1}
    assert run_pytest(suite, tmp_path / "wrong") == {"failed": len(cases), "skipped": 1}


def test_a_case_that_is_no_python_breaks_only_itself(tmp_path):
    suite = tmp_path / "test_book.py"
    with filled(entry("f(1)", 1), entry("f(<object>)", 1), entry("f('''\n\"\"\"')", 2), problem_id="toy/f") as book:
        export_pytest(book, suite, PROBLEMS)
    (tmp_path / "candidates").mkdir()
    (tmp_path / "candidates" / "toy_f.py").write_text("def f(x): return 1")
    assert run_pytest(suite) == {"passed": 1, "failed": 2}


@pytest.mark.slow
def test_integers_that_no_float_holds_are_compared_and_integers_are_exact(tmp_path):
    huge = 10**400
    cases = [entry("f(0)", 0.5), entry("f(1)", huge), entry("f(2)", 10**18), entry("f(3)", 1.0), entry("f(4)", True)]
    suite = tmp_path / "test_book.py"
    with filled(*cases, problem_id="toy/f") as book:
        export_pytest(book, suite, PROBLEMS)
    folder = tmp_path / "candidates"
    folder.mkdir()
    program = "def f(n):\n    return [{first}, {second}, {third}, {fourth}, True][n]\n"
    right = {"first": "0.5 + 1e-12", "second": "10 ** 400", "third": "10 ** 18", "fourth": "1"}
    (folder / "toy_f.py").write_text(program.format(**right))
    assert run_pytest(suite) == {"passed": 5}
    wrong = {"first": "10 ** 400", "second": "1.5", "third": "10 ** 18 + 1", "fourth": "-(10 ** 400)"}
    (folder / "toy_f.py").write_text(program.format(**wrong))
    assert run_pytest(suite) == {"failed": 4, "passed": 1}
    assert "OverflowError" not in run_text(suite)


def test_cases_of_a_problem_with_several_right_answers_are_not_written(tmp_path):
    loose = replace(identity("toy/f", "f"), answers=AnswerRules(order="unordered"))
    problems = ProblemSet("toys", (loose, identity("toy/g", "g")))
    with filled(entry("f([1])", [1]), problem_id="toy/f") as book:
        book.absorb([StoredEntry("toy/g", entry("g(1)", 1))], {})
        report = export_pytest(book, tmp_path / "test_book.py", problems)
    assert report.written == 1
    assert [row.place for row in report.skipped] == ["toy/f"]
    assert "f([1])" not in (tmp_path / "test_book.py").read_text()


@pytest.mark.slow
def test_methods_and_programs_on_standard_input_are_called_as_in_the_game(tmp_path):
    cases = {
        "methods": ("Solution().balance_point([7, 0])", 0),
        "stdin": ("run('1 2').split()[0]", "3"),
    }
    script = Problem("stdin/sum", "Add.", "run", "print()", (), kind=ProblemKind.STDIN)
    problems = ProblemSet("kinds", (*load_problems("starter:methods", limit=1), script))
    programs = ("class Solution:\n    def balance_point(self, w): return {}\n", "input()\nprint({}, 2)\n")
    for problem, (expression, value), program in zip(problems, cases.values(), programs, strict=True):
        suite = tmp_path / f"test_{problem.kind}.py"
        with filled(entry(expression, value), problem_id=problem.id) as book:
            export_pytest(book, suite, problems)
        name = re.sub(r"\W", "_", problem.id) + ".py"
        for folder, answer in (("right", value), ("wrong", 9)):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / name).write_text(program.format(answer))
        assert run_pytest(suite, tmp_path / "right") == {"passed": 1}
        assert run_pytest(suite, tmp_path / "wrong") == {"failed": 1}
