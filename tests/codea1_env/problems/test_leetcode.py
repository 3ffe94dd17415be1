"""A row made from the published description of LeetCodeDataset; the problem is our own."""

from __future__ import annotations

from typing import Any

from codea1_env.facts.problem_kinds import ProblemKind
from codea1_env.judging.problem_check import CheckStatus, check_problems
from codea1_env.problems import GoldenHarness
from codea1_env.problems.layouts import read_row
from codea1_env.sandbox import Sandbox

ROW: dict[str, Any] = {
    "task_id": "shifted-sum",
    "difficulty": "Easy",
    "problem_description": (
        "Return the sum of the numbers, each moved by a step.\n\nExample 1:\n\nInput: nums = [1,2], step = 3\n"
        "Output: 9\n\nExample 2:\n\nInput: nums = []\nOutput: 0\nExplanation: There is none.\n"
        "Example 3:\nInput: the list of all primes\nOutput: infinity\n"
    ),
    "starter_code": "class Solution:\n    def shiftedSum(self, nums: List[int], step: int = 0) -> int:\n        ",
    "prompt": "from typing import *\n\ndef moved(number, step):\n    return number + step\n",
    "completion": (
        "class Solution:\n    def shiftedSum(self, nums: List[int], step: int = 0) -> int:\n"
        "        return sum(moved(number, step) for number in nums)\n"
    ),
    "entry_point": "Solution().shiftedSum",
    "test": "def check(candidate):\n    assert candidate(nums = [1,2], step = 3) == 9\n    assert candidate([]) == 0\n",
}


def test_a_row_becomes_a_problem_with_a_method(sandbox: Sandbox) -> None:
    problem = read_row(ROW)
    assert (problem.id, problem.kind) == ("LeetCode/shifted-sum", ProblemKind.METHOD)
    assert problem.statement.endswith("-> int:")
    assert [type(test) for test in problem.golden] == [GoldenHarness]
    assert problem.examples == (
        "assert Solution().shiftedSum(nums=[1, 2], step=3) == 9",
        "assert Solution().shiftedSum(nums=[]) == 0",
    )
    assert [check.status for check in check_problems([problem], sandbox)] == [CheckStatus.OK]
