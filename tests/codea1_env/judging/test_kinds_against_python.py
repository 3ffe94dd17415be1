"""Differential: methods and programs that print get the verdicts of plain Python, one process per program and
test."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from codea1_agents.scripted.mutation import mutants_of
from codea1_env.facts.answers import in_form
from codea1_env.facts.verdicts import Verdict
from codea1_env.judging.golden import ExpectedValues, golden_jobs, golden_results
from codea1_env.problems import GoldenCase, Problem, load_problems
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox import Sandbox
from codea1_env.sandbox.interface import Limits
from tests.support import argv_problems
from tests.support.styles import classes_like, scripts_like

pytestmark = pytest.mark.slow

N_TESTS, N_MUTANTS, MUTANT_STEP = 3, 4, 7
LIMITS = Limits(cpu_s=2.0)
TIME_LIMIT_S = 20.0
TRICKY = {
    "threads and status": "import threading\nthreading.Thread(target=lambda: 1 / 0).start()\nprint(open(0).read())",
    "late output": "class A:\n    def __del__(self):\n        print('bye')\na = A()",
    "both streams": "import sys\nsys.stderr.write('x')\nsys.stdout.write(input())",
    "prompt": "print(input('? '))",
    "part of the input": "import sys\nprint(sys.stdin.read(1))\nprint(sys.stdin.readline())",
    "an open stream": "out = open(1, 'w', closefd=False)\nout.write('1')\nprint('2')",
    "own error hook": "import sys\nsys.excepthook = lambda *_: print('caught')\n1 / 0",
    "exit in an exit handler": "import atexit, os\natexit.register(os._exit, 0)\nprint(1, flush=True)",
    "closed output": "import sys\nprint(1)\nsys.stdout.close()",
    "surrogate": "print('\\ud800')",
    "recursion": "import sys\nsys.setrecursionlimit(10**5)\nf = lambda n: n and 1 + f(n - 1)\nprint(f(5000))",
    "nothing": "",
}


def cases_of(problem: Problem) -> list[GoldenCase]:
    return [test for test in problem.golden if isinstance(test, GoldenCase)][:N_TESTS]


def script_passes(problem: Problem, program: str, case: GoldenCase, folder: Path) -> bool:
    """Run a program by itself on one input, as a contest does."""
    assert problem.printed is not None
    call = ast.parse(case.expression, mode="eval").body
    assert isinstance(call, ast.Call)
    texts = [str(ast.literal_eval(each)) for each in call.args]
    text, arguments = ("", texts) if problem.programs.takes_list else (texts[0], [])
    path = folder / "program.py"
    path.write_text(program, encoding="utf-8")
    given = (text if text.endswith("\n") or not text else f"{text}\n").encode()
    try:
        done = subprocess.run(
            [sys.executable, path, *arguments], input=given, capture_output=True, timeout=TIME_LIMIT_S, check=False
        )
        printed = in_form(done.stdout, problem.printed)
    except (subprocess.TimeoutExpired, UnicodeDecodeError):
        return False
    return done.returncode == 0 and printed == in_form(str(ast.literal_eval(case.expected)).encode(), problem.printed)


def class_passes(problem: Problem, program: str, case: GoldenCase, folder: Path) -> bool:
    path = folder / "program.py"
    path.write_text(f"{program}\n\nassert {case.expression} == {case.expected}\n", encoding="utf-8")
    try:
        done = subprocess.run([sys.executable, path], capture_output=True, timeout=TIME_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def programs_of(problem: Problem) -> list[str]:
    method = problem.entry_point.rpartition(".")[2]
    styles = scripts_like(problem.solution) if problem.script else classes_like(problem.solution, method)
    faulty = [mutant.program for mutant in mutants_of(problem)[::MUTANT_STEP][:N_MUTANTS]]
    return [*styles.values(), *(wrong.program for wrong in problem.wrong_programs), *faulty]


def verdicts(problem: Problem, programs: list[str], sandbox: Sandbox) -> list[list[bool]]:
    plans = [golden_jobs(problem, program, LIMITS) for program in programs]
    reports = sandbox.run([job for (job,) in plans])
    expected = ExpectedValues(sandbox).of([problem])
    comparison = preset("fixed").comparison
    found = [golden_results(problem, [report], expected, comparison) for report in reports]
    return [[result.verdict is Verdict.PASSED for result in results] for results in found]


@pytest.mark.parametrize(
    "problem",
    [each for source in ("starter:stdin", "starter:methods", argv_problems.SOURCE) for each in load_problems(source)],
    ids=lambda problem: problem.id,
)
def test_the_judge_agrees_with_plain_python(sandbox: Sandbox, tmp_path: Path, problem: Problem) -> None:
    short = replace(problem, golden=tuple(cases_of(problem)))
    programs = programs_of(short)
    passes = script_passes if short.script else class_passes
    plain = [[passes(short, program, case, tmp_path) for case in cases_of(short)] for program in programs]
    assert verdicts(short, programs, sandbox) == plain
    assert {True, False} <= {passed for row in plain for passed in row}


@pytest.mark.parametrize("name", TRICKY)
def test_the_judge_agrees_about_programs_that_end_in_odd_ways(sandbox: Sandbox, tmp_path: Path, name: str) -> None:
    program, outputs = TRICKY[name], ("", "ab", "a b", "? ab", "2 1", "1", "5000", "bye", "caught")
    golden = tuple(GoldenCase("run('ab')", repr(output)) for output in outputs)
    problem = Problem("odd", "Odd.", "run", "pass", golden, kind=load_problems("starter:stdin")[0].kind)
    plain = [script_passes(problem, program, case, tmp_path) for case in golden]
    assert verdicts(problem, [program], sandbox) == [plain]
