"""Rows with the published columns of data sets; their content was written for these tests."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["f", "def f(): ...", "a\0"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)

OWN = {"id": "mine/1", "statement": "Double it.", "entry_point": "f", "solution": "def f(x):\n    return 2 * x\n"}
"""In the layout of this project."""

_DOUBLE = "def double(x):\n    return 2 * x\n"

KODCODE: dict[str, Any] = {
    "version": "v1.1",
    "style": "instruct",
    "subset": "Prefill",
    "question_id": "Prefill_0_I",
    "question": "Double every number of a list, but leave out the negative ones.",
    "solution": "def doubled(numbers):\n    return [2 * n for n in numbers if n >= 0]\n",
    "test": (
        "import pytest\nfrom solution import doubled\n\n"
        "def test_plain():\n    assert doubled([1, 2]) == [2, 4]\n\n"
        "def test_negative():\n    assert doubled([-1, 3]) == [6]\n\n"
        "def test_wrong_type():\n    with pytest.raises(TypeError):\n        doubled(None)\n"
    ),
    "test_info": [
        {
            "function_name": "doubled",
            "parameter_list": "(numbers)",
            "function_declaration": "def doubled(numbers):",
            "docstring": "",
        }
    ],
    "gpt_difficulty": "easy",
}
APPS: dict[str, Any] = {
    "problem_id": 7,
    "question": "Read a number and print its double.\n\n-----Input-----\nOne integer.\n",
    "solutions": json.dumps(["print raw_input()", "print(2 * int(input()))"]),
    "input_output": json.dumps({"inputs": ["2\n", ["5", ""]], "outputs": ["4\n", ["10"]]}),
    "difficulty": "interview",
    "url": "",
    "starter_code": "",
}
_TOTAL = "class Solution:\n    def total(self, words: List[str]) -> int:\n        "
APPS_METHOD = APPS | {
    "problem_id": 8,
    "question": "Return the sum of the counts of the words.",
    "solutions": json.dumps([f"{_TOTAL}return len(Counter(words))\n"]),
    "input_output": json.dumps({"fn_name": "total", "inputs": [[["a", "b"]], [[]]], "outputs": [2, 0]}),
    "starter_code": _TOTAL,
}
TACO: dict[str, Any] = {
    "question": "Given a list, return it without its first item.",
    "solutions": json.dumps(["def tail(items):\n    return items[1:]\n"]),
    "starter_code": "def tail(items):\n\t",
    "input_output": json.dumps({"fn_name": "tail", "inputs": [[[1, 2, 3]], [[4, 5]]], "outputs": [[[2, 3]], [[5]]]}),
    "difficulty": "EASY",
    "source": "codewars",
    "url": "",
    "picture_num": "0",
    **dict.fromkeys(("raw_tags", "tags", "skill_types"), "[]"),
    **dict.fromkeys(("name", "date", "time_limit", "memory_limit", "Expected Auxiliary Space"), None),
    "Expected Time Complexity": None,
}
CODE_CONTESTS: dict[str, Any] = {
    "name": "7_A. Doubles",
    "description": "Print the double of a number.",
    "public_tests": {"input": ["2\n"], "output": ["4\n"]},
    "private_tests": {"input": ["5\n"], "output": ["10\n"]},
    "generated_tests": {"input": [], "output": []},
    "source": 2,
    "solutions": {"language": [2, 3], "solution": ["int main() {}", "print(int(input()) * 2)"]},
    "incorrect_solutions": {"language": [], "solution": []},
    "input_file": "",
    "output_file": "",
}
LIVE_CODE_BENCH: dict[str, Any] = {
    "question_title": "double",
    "question_content": "Read a number and print its double.",
    "platform": "atcoder",
    "question_id": "abc000_a",
    "contest_id": "abc000",
    "contest_date": "2024-01-01T00:00:00",
    "starter_code": "",
    "difficulty": "easy",
    "public_test_cases": json.dumps([{"input": "2\n", "output": "4\n", "testtype": "stdin"}]),
    "private_test_cases": json.dumps([{"input": "8\n", "output": "16\n", "testtype": "stdin"}]),
    "metadata": "{}",
    "solution": "print(int(input()) * 2)\n",
}
LIVE_CODE_BENCH_METHOD = LIVE_CODE_BENCH | {
    "question_id": "3000",
    "starter_code": "class Solution:\n    def scaled(self, items: List[int], by: int) -> List[int]:\n        ",
    "public_test_cases": json.dumps([{"input": "[1, 2]\n3", "output": "[3, 6]", "testtype": "functional"}]),
    "private_test_cases": "eJxrYJk6nwEAA1UBgQ==",
    "metadata": json.dumps({"func_name": "scaled"}),
    "solution": "class Solution:\n    def scaled(self, items, by):\n        return [by * item for item in items]\n",
}
LEETCODE: dict[str, Any] = {
    "task_id": "double-sum",
    "question_id": 3001,
    "difficulty": "Easy",
    "tags": ["Array"],
    "problem_description": (
        "Return the double of the sum of the numbers, each moved by a step.\n\nExample 1:\n\n"
        "Input: nums = [1,2], step = 3\nOutput: 18\n\nExample 2:\n\nInput: nums = []\nOutput: 0\n"
        "Explanation: There is none.\nExample 3:\nInput: the list of all primes\nOutput: infinity\n"
    ),
    "starter_code": "class Solution:\n    def doubleSum(self, nums: List[int], step: int = 0) -> int:\n        ",
    "estimated_date": "2024-01-01",
    "prompt": "from typing import *\n\ndef moved(number, step):\n    return number + step\n",
    "completion": (
        "class Solution:\n    def doubleSum(self, nums: List[int], step: int = 0) -> int:\n"
        "        return 2 * sum(moved(number, step) for number in nums)\n"
    ),
    "entry_point": "Solution().doubleSum",
    "test": "def check(candidate):\n    assert candidate(nums=[1,2], step = 3) == 18\n    assert candidate([]) == 0\n",
    "input_output": [{"input": "nums = [1, 2]", "output": "6"}],
    "query": "...",
    "response": "...",
}
MBPP: dict[str, Any] = {
    "task_id": 9001,
    "text": "Write a function to double a number.",
    "code": _DOUBLE,
    "test_list": ["assert double(2) == 4", "assert double(-1) == -2"],
    "test_setup_code": "",
    "challenge_test_list": ["assert double(0) == 0"],
}
MBPP_SANITIZED: dict[str, Any] = {
    "source_file": "Benchmark Questions Verification V2.ipynb",
    "task_id": 9002,
    "prompt": "Write a function to double a number.",
    "code": _DOUBLE,
    "test_imports": ["import math"],
    "test_list": ["assert double(2) == 4", "assert math.isclose(double(0.5), 1.0)"],
}
MBPP_PLUS = MBPP_SANITIZED | {
    "task_id": 9003,
    "test_imports": [],
    "test_list": ["assert double(2) == 4"],
    "test": (
        "def same(found, expected, atol):\n    assert found == expected, atol\n\n"
        "inputs = [[1], [2.5]]\nresults = [2, 5.0]\n"
        "for i, (given, expected) in enumerate(zip(inputs, results)):\n    same(double(*given), expected, 0)\n"
    ),
}
HUMANEVAL: dict[str, Any] = {
    "task_id": "HumanEval/9000",
    "prompt": 'def double(x):\n    """Double it.\n    >>> double(2)\n    4\n    """\n',
    "canonical_solution": "    return 2 * x\n",
    "entry_point": "double",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n",
}
EVALPLUS: dict[str, Any] = {name: value for name, value in HUMANEVAL.items() if name != "test"} | {
    "base_input": [[1]],
    "plus_input": [[2]],
    "atol": 0,
    "contract": "",
}
_COUNTED = '''import math
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
BIGCODEBENCH: dict[str, Any] = {
    "task_id": "BigCodeBench/9000",
    "complete_prompt": _COUNTED,
    "instruct_prompt": "Count the words ...",
    "canonical_solution": "    return {w: int(math.pow(n, power)) for w, n in Counter(words).items() if n > FLOOR}\n",
    "code_prompt": _COUNTED.split('    """')[0],
    "test": """import unittest

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
""",
    "entry_point": "task_func",
    "doc_struct": "{}",
    "libs": "['math', 'collections']",
}
ULT: dict[str, Any] = {
    "task_id": 12,
    "prompt": "Return the square root of the sum of the positive numbers, and 0.0 if there are none.",
    "code": "def root(numbers: List[float]) -> float:\n    return math.sqrt(sum(n for n in numbers if n > 0))\n",
    "func_name": "root",
    "cyclomatic_complexity": 11,
    "test_input": None,
}

PUBLISHED: dict[str, tuple[dict[str, Any], ...]] = {
    "KodCode": (KODCODE,),
    "APPS": (APPS, APPS_METHOD),
    "TACO": (TACO,),
    "CodeContests": (CODE_CONTESTS,),
    "LiveCodeBench": (LIVE_CODE_BENCH, LIVE_CODE_BENCH_METHOD),
    "LeetCodeDataset": (LEETCODE,),
    "MBPP": (MBPP,),
    "MBPP sanitized": (MBPP_SANITIZED, MBPP_PLUS),
    "HumanEval": (HUMANEVAL,),
    "EvalPlus": (EVALPLUS,),
    "BigCodeBench": (BIGCODEBENCH,),
    "ULT": (ULT,),
}
"""Playable rows by the name of their layout."""
