"""Our verdicts against those of evalplus' own evaluator, on the same samples; skipped where it is not installed.

Where the two differ, and why: docs/evaluation.md. evalplus runs programs in a child of this process with nothing but
its own guards, so only harmless samples stand here.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from codea1_env.judging.golden_runs import PROGRAM_LIMITS, run_golden
from codea1_env.problems import load_problems
from codea1_env.problems.evalplus import problem_from_row
from codea1_env.problems.problem import GoldenCase
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox import Sandbox

pytest.importorskip("evalplus", reason="evalplus is not installed")


@dataclass(frozen=True)
class Row:
    """One problem in EvalPlus' layout, with its expected values."""

    columns: dict[str, Any]
    expected: list[Any]


def row(task_id: str, name: str, solution: str, inputs: list[list[Any]], atol: float = 0) -> Row:
    prompt = f"def {name}(x):\n    '''A problem.'''\n"
    namespace: dict[str, Any] = {}
    exec(prompt + solution, namespace)
    columns = {
        "task_id": task_id,
        "prompt": prompt,
        "entry_point": name,
        "canonical_solution": solution,
        "base_input": inputs[:1],
        "plus_input": inputs[1:],
        "atol": atol,
    }
    return Row(columns, [namespace[name](*arguments) for arguments in inputs])


DOUBLE = row("HumanEval/900", "double", "    return 2 * x\n", [[1], [0], [-3], [2.5]])
HALF = row("HumanEval/901", "half", "    return x / 3\n", [[1], [7], [-9]], atol=1e-6)
PAIRS = row("HumanEval/902", "pairs", "    return [(c, x.count(c)) for c in sorted(set(x))]\n", [["aba"], [""]])
TOTAL = row("HumanEval/903", "total", "    return sum(x)\n", [[[1, 2]], [[3]]])
SHARED = row("Mbpp/901", "similar_elements", "    return tuple(set(x) & {1, 2, 3})\n", [[[1, 2, 7]], [[]]])

AGREED = {
    "right": (DOUBLE, "def double(x):\n    return x + x", True),
    "wrong": (DOUBLE, "def double(x):\n    return x * x", False),
    "wrong on one hidden input only": (DOUBLE, "def double(x):\n    return 2 * x if x >= 0 else 0", False),
    "crashing": (DOUBLE, "def double(x):\n    raise KeyError(x)", False),
    "crashing on some": (DOUBLE, "def double(x):\n    return 2 * x if x else 1 // x", False),
    "ending its process": (DOUBLE, "import sys\ndef double(x):\n    sys.exit(0)", False),
    "no such function": (DOUBLE, "def twice(x):\n    return 2 * x", False),
    "not Python": (DOUBLE, "def double(x)\n    return 2 * x", False),
    "raising while it loads": (DOUBLE, "raise ValueError\ndef double(x):\n    return 2 * x", False),
    "hanging": (DOUBLE, "def double(x):\n    while True:\n        pass", False),
    "a float within the tolerance": (HALF, "def half(x):\n    return x / 3 + 5e-7", True),
    "a float beyond the tolerance": (HALF, "def half(x):\n    return x / 3 + 1e-5", False),
    "an int for a whole float": (DOUBLE, "def double(x):\n    return int(2 * x) if x == 2.5 else 2 * x", True),
    "lists for tuples": (PAIRS, "def pairs(x):\n    return [[c, x.count(c)] for c in sorted(set(x))]", False),
    "any order where only the set counts": (SHARED, "def similar_elements(x):\n    return [2, 1] if x else ()", True),
    "clearing its argument": (TOTAL, "def total(x):\n    found = sum(x)\n    x.clear()\n    return found", True),
    "prints a lot": (DOUBLE, "def double(x):\n    print('noise' * 1000)\n    return 2 * x", True),
}


DISPUTED = {
    # They limit the wall-clock time, a second per input at least. We limit processor time, and sleeping costs none.
    "slow, but it ends": ("import time\ndef double(x):\n    time.sleep(1.5)\n    return 2 * x", False, True),
    "a value that claims to equal anything": (
        "class Any:\n    def __eq__(self, other):\n        return True\ndef double(x):\n    return Any()",
        True,
        False,
    ),
}
"""Programs for DOUBLE, the verdict of evalplus, and ours."""


@pytest.fixture
def theirs() -> Callable[[Row, str], bool]:
    """Ask evalplus."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own
        from evalplus import eval as evaluator

    def judge(of: Row, program: str) -> bool:
        columns = of.columns
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # forking in a process with threads
            status, _ = evaluator.untrusted_check(
                columns["task_id"].partition("/")[0].lower(),
                program,
                [*columns["base_input"], *columns["plus_input"]],
                columns["entry_point"],
                of.expected,
                columns["atol"],
                [0.01] * len(of.expected),
                fast_check=True,
            )
        return bool(status == evaluator.PASS)

    return judge


def ours(of: Row, program: str, sandbox: Sandbox) -> bool | None:
    limits = replace(PROGRAM_LIMITS, cpu_s=1.0)  # or the hanging ones would take twenty
    problem = problem_from_row(of.columns)
    (found,) = run_golden([(problem, program)], sandbox, preset("fixed").comparison, limits=limits)
    return found.passed


@pytest.mark.parametrize("name", AGREED)
def test_the_verdict_is_that_of_evalplus(name: str, sandbox: Sandbox, theirs: Callable[[Row, str], bool]) -> None:
    of, program, expected = AGREED[name]
    assert theirs(of, program) is expected
    assert ours(of, program, sandbox) is expected


@pytest.mark.parametrize("name", DISPUTED)
def test_the_verdict_is_not_that_of_evalplus(name: str, sandbox: Sandbox, theirs: Callable[[Row, str], bool]) -> None:
    program, of_evalplus, of_ours = DISPUTED[name]
    assert theirs(DOUBLE, program) is of_evalplus
    assert ours(DOUBLE, program, sandbox) is of_ours


def starter_rows(n: int) -> Iterator[tuple[Row, list[str]]]:
    """Yield problems of `starter` as rows, each with its solution and its known wrong programs."""
    for problem in load_problems("starter")[:n]:
        cases = [test for test in problem.golden if isinstance(test, GoldenCase)]
        inputs = [_literals(case.expression) for case in cases]
        if not inputs or None in inputs:
            continue
        columns = {
            "task_id": f"HumanEval/{problem.id}",
            "prompt": problem.statement,
            "entry_point": problem.entry_point,
            "canonical_solution": f"{problem.imports}\n{problem.solution}",
            "base_input": inputs,
            "plus_input": [],
            "atol": 0,
        }
        expected = [ast.literal_eval(case.expected) for case in cases]
        programs = [problem.solution, *(wrong.program for wrong in problem.wrong_programs)]
        yield Row(columns, expected), [f"{problem.imports}\n{program}" for program in programs]


def _literals(expression: str) -> list[Any] | None:
    call = ast.parse(expression, mode="eval").body
    if not isinstance(call, ast.Call) or call.keywords:
        return None
    try:
        return [ast.literal_eval(each) for each in call.args]
    except ValueError:
        return None


@pytest.mark.slow
def test_the_known_wrong_programs_of_starter_are_wrong_for_both(
    sandbox: Sandbox, theirs: Callable[[Row, str], bool]
) -> None:
    n = 0
    for of, programs in starter_rows(8):
        for program in programs:
            assert ours(of, program, sandbox) is theirs(of, program), program
            n += 1
    assert n > 20
