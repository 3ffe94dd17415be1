from __future__ import annotations

from typing import Any

import pytest

from codea1_env.errors import BrokenInput
from codea1_env.problems import GoldenHarness, Problem
from codea1_env.problems.evalplus import problem_from_row, restore_types

DOCSTRING = '"""Mean.\n    >>> mean([1.0, 2.0])\n    1.5\n    """'
PROMPT = f"from typing import List\n\ndef mean(xs: List[float]):\n    {DOCSTRING}\n"


def row(**changes: Any) -> dict[str, Any]:
    return {
        "task_id": "HumanEval/999",
        "prompt": PROMPT,
        "entry_point": "mean",
        "canonical_solution": "    return sum(xs) / len(xs)\n",
        "base_input": [[[1.0, 2.0]]],
        "plus_input": [[[0.1, 0.2, 0.3]], [[]]],
        "atol": 0,
        "contract": "    assert xs",
    } | changes


def check(problem: Problem, program: str) -> bool:
    (harness,) = problem.golden
    assert isinstance(harness, GoldenHarness)
    candidate: dict[str, Any] = {}
    exec(program, candidate)
    namespace: dict[str, Any] = {problem.entry_point: candidate[problem.entry_point]}
    exec(harness.source, namespace)
    try:
        namespace["check"](candidate[problem.entry_point])
    except AssertionError:
        return False
    return True


def test_the_solution_is_prompt_and_body_and_passes() -> None:
    problem = problem_from_row(row())
    assert problem.examples == ("assert mean([1.0, 2.0]) == 1.5",)
    assert problem.licence == "MIT AND Apache-2.0"
    assert check(problem, problem.solution)
    assert problem_from_row(FACTORIAL).solution == FACTORIAL["canonical_solution"]


def bare(name: str, solution: str, *inputs: Any, **changes: Any) -> dict[str, Any]:
    """A row whose whole solution stands in its column."""
    of = {"prompt": "-", "entry_point": name, "canonical_solution": solution, "base_input": [*inputs], "plus_input": {}}
    return row(**of | changes)


FACTORIAL = bare("f", "def f(n):\n    return 1 if n == 0 else n * f(n - 1)\n", [3], [5])
APPENDS = bare("f", "def f(xs):\n    xs.append(0)\n    return len(xs)\n", [[1]])
COMMON = "def similar_elements(a, b):\n    return tuple(set(a) & set(b))\n"
SIMILAR = bare("similar_elements", COMMON, [[3, 4, 5], [5, 4]], task_id="Mbpp/2")
ZERO = bare("find_zero", "def find_zero(xs):\n    return 1.0\n", [[1, 0, -1]])


@pytest.mark.parametrize(
    ("row", "answer", "is_right"),
    [
        (row(), "mean(xs): return sum(x / len(xs) for x in xs)", True),  # within a tolerance, and no further
        (row(), "mean(xs): return sum(xs) / len(xs) + 1e-4", False),
        (row(atol=0.001), "mean(xs): return sum(xs) / len(xs) + 1e-4", True),
        (FACTORIAL, "f(n): return 1", False),  # the solution calls itself and not the candidate
        (APPENDS, "f(xs): return len(xs) + 1", True),  # inputs are fresh for the candidate
        (SIMILAR, "similar_elements(a, b): return (5, 4)", True),  # all right answers are accepted
        (SIMILAR, "similar_elements(a, b): return (4, 5, 4)", True),
        (SIMILAR, "similar_elements(a, b): return (5,)", False),
        (SIMILAR, "similar_elements(a, b): return (4, 5) if isinstance(a, list) else ()", False),
        (ZERO, "find_zero(xs): return -1.0", True),  # and any zero of the polynomial
        (ZERO, "find_zero(xs): return 0.5", False),
    ],
)
def test_the_harness_tells_right_from_wrong(row: dict[str, Any], answer: str, is_right: bool) -> None:
    assert check(problem_from_row(row), f"def {answer}") is is_right


def test_a_solution_that_fails_on_every_input_proves_nothing() -> None:
    problem = problem_from_row(row(base_input=[[[]]], plus_input=[]))
    with pytest.raises(ValueError, match="fails on every input"):
        check(problem, problem.solution)


@pytest.mark.parametrize(
    ("task_id", "stored", "restored"),
    [
        ("Mbpp/2", [[1], [2]], [(1,), (2,)]),
        ("Mbpp/63", [[[1], [2]]], [[(1,), (2,)]]),
        ("Mbpp/75", [[[1]], 2], [[(1,)], 2]),
        ("Mbpp/106", [[1], [2]], [[1], (2,)]),
        ("Mbpp/115", [[[1], []]], [[{1}, {}]]),
        ("Mbpp/124", ["1", "1j"], [1.0, 1j]),
        ("Mbpp/250", [[1], 1], [(1,), 1]),
        ("Mbpp/252", ["(1+2j)"], [1 + 2j]),
        ("Mbpp/259", [[[1]], [[2]]], [((1,),), ((2,),)]),
        ("Mbpp/278", [[1, [2]]], [(1, (2,))]),
        ("Mbpp/307", [[[], 5], 1, 2], [([], 5), 1, 2]),
        ("Mbpp/580", [[1, [2, [3]]]], [(1, (2, (3,)))]),
        ("Mbpp/722", [{"a": [1]}, 2], [{"a": (1,)}, 2]),
        ("Mbpp/3", [[1]], [[1]]),
        ("HumanEval/2", [[1]], [[1]]),
    ],
)
def test_the_types_that_json_cannot_write_come_back(task_id: str, stored: list[Any], restored: list[Any]) -> None:
    assert repr(restore_types(task_id, [stored])) == repr([restored])


def test_an_input_of_another_shape_is_reported() -> None:
    with pytest.raises(BrokenInput, match="an input of Mbpp/2 does not have the shape"):
        restore_types("Mbpp/2", [[1, 2]])
