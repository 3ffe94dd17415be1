from __future__ import annotations

from typing import Any

import pytest

from codea1_env.errors import BrokenInput
from codea1_env.judging.golden import ExpectedValues, golden_jobs, golden_results
from codea1_env.judging.problem_check import CheckStatus, check_problems
from codea1_env.problems.layouts import read_row
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox import load_sandbox

PROMPT = '''import math
from collections import Counter

# Constants
FLOOR = 1

def task_func(words, power=2):
    """
    Count the words, keep those that occur more than FLOOR times, and raise their counts to a power.

    Example:
    >>> task_func(["a", "b", "a"])
    {'a': 4}
    """
'''
TEST = """import unittest

class TestCases(unittest.TestCase):
    def setUp(self):
        self.words = ["a", "b", "a"]

    def test_counts(self):
        self.assertEqual(task_func(self.words), {"a": 4})

    def test_power(self):
        self.words.append("b")
        self.assertDictEqual(task_func(self.words, power=3), {"a": 8, "b": 8})

    def test_floor_is_a_constant_of_the_statement(self):
        self.assertEqual(task_func(["x"] * FLOOR), {})

    def test_not_words(self):
        with self.assertRaises(TypeError):
            task_func(7)
"""


def row(**changes: Any) -> dict[str, Any]:
    """Return a row with the columns of BigCodeBench."""
    body = "    return {w: int(math.pow(n, power)) for w, n in Counter(words).items() if n > FLOOR}\n"
    return {
        "task_id": "BigCodeBench/9999",
        "complete_prompt": PROMPT,
        "instruct_prompt": "Count the words ...",
        "canonical_solution": body,
        "code_prompt": PROMPT.split('    """')[0],
        "test": TEST,
        "entry_point": "task_func",
        "doc_struct": "{}",
        "libs": "['math', 'collections']",
        **changes,
    }


def passes(program: str) -> bool | None:
    problem = read_row(row())
    sandbox = load_sandbox("local")
    reports, expected = sandbox.run(golden_jobs(problem, program)), ExpectedValues(sandbox).of([problem])
    return golden_results(problem, reports, expected, preset("fixed").comparison)[0].passed


def test_a_row_is_recognised_and_its_solution_passes_its_own_tests() -> None:
    problem = read_row(row())
    assert (problem.id, problem.entry_point, problem.source) == ("BigCodeBench/9999", "task_func", "BigCodeBench")
    assert problem.examples
    assert [check.status for check in check_problems([problem], load_sandbox("local"))] == [CheckStatus.OK]


def test_every_method_of_the_test_class_counts() -> None:
    right = "def task_func(words, power=2):\n    return {w: n ** power for w, n in Counter(words).items() if n > 1}\n"
    assert passes(right) is True
    assert passes(right.replace("n ** power", "n ** 2")) is False  # only test_power tells
    assert passes(right.replace("n > 1", "n > 0")) is False


def test_a_candidate_may_use_the_imports_of_the_statement() -> None:
    assert passes(
        "def task_func(w, power=2):\n    return {k: math.pow(n, power) for k, n in Counter(w).items() if n > 1}"
    )


def test_a_row_without_a_code_prompt_is_read_from_the_complete_one() -> None:
    assert '"""' in read_row(row(code_prompt=None)).solution


def test_a_solution_of_another_function_is_broken() -> None:
    with pytest.raises(BrokenInput, match="does not define other"):
        read_row(row(entry_point="other"))
