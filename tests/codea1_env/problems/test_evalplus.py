from __future__ import annotations

from typing import Any

import pytest

from codea1_env.errors import BrokenInput, UserError
from codea1_env.problems import GoldenHarness, Problem
from codea1_env.problems.evalplus import problem_from_row, restore_types

PROMPT = '''from typing import List

def mean(xs: List[float]):
    """Mean.
    >>> mean([1.0, 2.0])
    1.5
    """
'''


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


def test_floats_are_compared_within_a_tolerance_and_no_further() -> None:
    problem = problem_from_row(row())
    assert check(problem, "def mean(xs):\n    return sum(x / len(xs) for x in xs)")
    assert not check(problem, "def mean(xs):\n    return sum(xs) / len(xs) + 1e-4")
    assert check(problem_from_row(row(atol=0.001)), "def mean(xs):\n    return sum(xs) / len(xs) + 1e-4")


def test_a_recursive_solution_calls_itself_and_not_the_candidate() -> None:
    solution = "def f(n):\n    return 1 if n == 0 else n * f(n - 1)\n"
    problem = problem_from_row(
        row(prompt="Factorial.", entry_point="f", canonical_solution=solution, base_input=[[3]], plus_input=[[5]])
    )
    assert problem.solution == solution
    assert not check(problem, "def f(n):\n    return 1")


def test_inputs_are_fresh_for_the_candidate() -> None:
    solution = "def f(xs):\n    xs.append(0)\n    return len(xs)\n"
    problem = problem_from_row(row(prompt="-", entry_point="f", canonical_solution=solution, base_input=[[[1]]]))
    assert check(problem, "def f(xs):\n    return len(xs) + 1")


def test_a_problem_with_several_right_answers_accepts_them_all() -> None:
    both = {"task_id": "Mbpp/2", "entry_point": "similar_elements", "prompt": "-", "plus_input": {}}
    solution = "def similar_elements(a, b):\n    return tuple(set(a) & set(b))\n"
    problem = problem_from_row(row(**both, canonical_solution=solution, base_input=[[[3, 4, 5], [5, 4]]]))
    assert check(problem, "def similar_elements(a, b):\n    return (5, 4)")
    assert check(problem, "def similar_elements(a, b):\n    return (4, 5, 4)")
    assert not check(problem, "def similar_elements(a, b):\n    return (5,)")
    assert not check(problem, "def similar_elements(a, b):\n    return (4, 5) if isinstance(a, list) else ()")


def test_any_zero_of_the_polynomial_is_right() -> None:
    solution = "def find_zero(xs):\n    return 1.0\n"
    problem = problem_from_row(
        row(prompt="-", entry_point="find_zero", canonical_solution=solution, base_input=[[[1, 0, -1]]], plus_input=[])
    )
    assert check(problem, "def find_zero(xs):\n    return -1.0")
    assert not check(problem, "def find_zero(xs):\n    return 0.5")


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
    with pytest.raises(BrokenInput, match="an input of Mbpp/2 has another shape"):
        restore_types("Mbpp/2", [[1, 2]])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"base_input": "1"}, "not a list of argument lists"),
        ({"base_input": [1]}, "not a list of argument lists"),
        ({"atol": "small"}, "holds str, not a number"),
        ({"canonical_solution": "return"}, "is not Python"),
        ({"entry_point": "median"}, "does not define median"),
    ],
)
def test_a_broken_row_says_what_is_wrong(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        problem_from_row(row(**changes))
