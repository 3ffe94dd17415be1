"""Rows made from the published descriptions of APPS, CodeContests and LiveCodeBench; the problems are our own."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from codea1_env.errors import BrokenInput
from codea1_env.facts.outputs import OutputForm
from codea1_env.judging.problem_check import CheckStatus, check_problems
from codea1_env.problems import GoldenCase
from codea1_env.problems.layouts import read_row
from codea1_env.problems.problem import ProblemKind
from codea1_env.sandbox import Sandbox

ADD, PYTHON_2 = "a, b = map(int, input().split())\nprint(a + b)\n", "print raw_input()"
APPS = {
    "problem_id": 17,
    "question": "Print the sum of two integers.",
    "solutions": json.dumps([PYTHON_2, ADD]),
    "input_output": json.dumps({"inputs": ["1 2\n", "3 4\n"], "outputs": ["3\n", "7\n"]}),
    "difficulty": "introductory",
    "url": "",
    "starter_code": "",
}
CODE_CONTESTS = {
    "name": "1_A. Sum",
    "description": "Print the sum of two integers.",
    "public_tests": {"input": ["1 2\n"], "output": ["3\n"]},
    "private_tests": {"input": ["3 4\n"], "output": ["7\n"]},
    "generated_tests": {"input": [], "output": []},
    "solutions": {"language": [2, 1, 3], "solution": ["int main() {}", PYTHON_2, ADD]},
    "input_file": "",
    "output_file": "",
}
LIVE = {
    "question_id": "abc1",
    "question_content": "Print the sum of two integers.",
    "public_test_cases": json.dumps([{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}]),
    "private_test_cases": json.dumps([{"input": "3 4\n", "output": "7\n", "testtype": "stdin"}]),
    "starter_code": "",
    "solution": ADD,
}
ROWS = {"APPS/17": APPS, "CodeContests/1_A. Sum": CODE_CONTESTS, "LiveCodeBench/abc1": LIVE}


@pytest.mark.parametrize("name", ROWS)
def test_a_row_becomes_a_problem_on_standard_input_that_its_solution_passes(name: str, sandbox: Sandbox) -> None:
    problem = read_row(ROWS[name])
    assert problem.id == name
    assert problem.kind is ProblemKind.STDIN
    assert problem.output is OutputForm.WORDS
    assert problem.solution == ADD
    assert problem.golden == (GoldenCase("run('1 2\\n')", "'3\\n'"), GoldenCase("run('3 4\\n')", "'7\\n'"))
    assert problem.examples[0] == "assert run('1 2\\n') == '3\\n'"
    assert [check.status for check in check_problems([problem], sandbox)] == [CheckStatus.OK]


def without(row: dict[str, Any], column: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != column}


PICKLED = base64.b64encode(b"x\x9c").decode()
TWO_INPUTS = json.dumps({"inputs": ["1 2", "3 4"], "outputs": ["3"]})
FUNCTION = json.dumps({"inputs": [[1, 2]], "outputs": [3], "fn_name": "add"})
CALLS = json.dumps([{"input": "1\n2", "output": "3", "testtype": "functional"}])


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (APPS | {"solutions": "[]x"}, "column 'solutions' is not JSON"),
        (APPS | {"solutions": json.dumps([PYTHON_2])}, "column 'solutions' holds no Python 3 program; the first"),
        (APPS | {"solutions": "{}"}, "column 'solutions' holds dict; expected a list of programs"),
        (APPS | {"input_output": "[1]"}, "column 'input_output' holds list; expected an object such as"),
        (
            APPS | {"input_output": TWO_INPUTS},
            "column 'input_output' has 2 inputs, but 1 outputs; each input needs one",
        ),
        (APPS | {"input_output": FUNCTION}, "tests the function 'add' and not a program on standard input"),
        (APPS | {"question": "Print any of them."}, "several outputs .'Print any'.*: such a problem needs a checker"),
        (
            CODE_CONTESTS | {"description": "If there are several answers, print any."},
            "column 'description' accepts several outputs",
        ),
        (CODE_CONTESTS | {"input_file": "in.txt"}, "column 'input_file' names a file"),
        (CODE_CONTESTS | {"solutions": {"language": [2], "solution": [""]}}, "column 'solutions' holds no Python 3"),
        (
            CODE_CONTESTS | {"public_tests": {"input": [1], "output": ["1"]}},
            "an input of column 'public_tests' holds int",
        ),
        (without(LIVE, "solution"), "LiveCodeBench has no solutions.*add the column 'solution'"),
        (LIVE | {"public_test_cases": CALLS}, "column 'public_test_cases' tests a function"),
        (LIVE | {"private_test_cases": PICKLED}, "column 'private_test_cases' is not JSON.*must be unpacked before"),
    ],
)
def test_a_row_that_cannot_be_played_says_why(row: dict[str, Any], reason: str) -> None:
    with pytest.raises(BrokenInput, match=reason):
        read_row(row)


@pytest.mark.parametrize(
    "statement",
    ["Print the number of ways.", "Is there any of length 3?", "Find the only answer.", "Any two numbers differ."],
)
def test_a_statement_with_one_right_output_is_not_refused(statement: str) -> None:
    assert read_row(APPS | {"question": statement}).statement == statement
