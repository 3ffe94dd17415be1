from __future__ import annotations

from codea1_env.facts.problem_kinds import ProblemKind
from codea1_env.problems import GoldenHarness
from codea1_env.problems.layouts import read_row
from tests.support.data_set_rows import LEETCODE


def test_a_row_becomes_a_problem_with_a_method() -> None:
    problem = read_row(LEETCODE)
    assert (problem.id, problem.kind) == ("LeetCode/double-sum", ProblemKind.METHOD)
    assert problem.statement.endswith("-> int:")
    assert [type(test) for test in problem.golden] == [GoldenHarness]
    assert problem.examples == (
        "assert Solution().doubleSum(nums=[1, 2], step=3) == 18",
        "assert Solution().doubleSum(nums=[]) == 0",
    )
