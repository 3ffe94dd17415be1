from __future__ import annotations

import json
from typing import Any

import pytest

from codea1_env.errors import BrokenInput
from codea1_env.facts.problem_kinds import ProblemKind
from codea1_env.problems import GoldenCase
from codea1_env.problems.layouts import read_row
from codea1_env.problems.problem import Refusal
from codea1_env.problems.refusals import RefusedRow
from tests.support.data_set_rows import APPS, APPS_METHOD, CODE_CONTESTS, LIVE_CODE_BENCH, LIVE_CODE_BENCH_METHOD, TACO

DEEP = "[" * 99 + "]" * 99


def input_output(**changes: Any) -> str:
    return json.dumps({"inputs": ["2\n"], "outputs": ["4\n"]} | changes)


def tail_of(argument: str) -> dict[str, Any]:
    """A row whose only test calls its function with this JSON."""
    return TACO | {"input_output": f'{{"fn_name": "tail", "inputs": [[{argument}]], "outputs": [1]}}'}


def test_the_first_solution_that_is_python_3_is_used_and_lines_are_joined() -> None:
    problem = read_row(APPS)
    assert (problem.id, problem.kind, problem.licence) == ("APPS/7", ProblemKind.STDIN, "MIT")
    assert problem.solution == "print(2 * int(input()))"
    assert problem.golden == (GoldenCase("run('2\\n')", "'4\\n'"), GoldenCase("run('5\\n')", "'10'"))
    assert problem.examples[0] == "assert run('2\\n') == '4\\n'"


def test_a_named_function_is_called_in_the_form_of_the_starter_code() -> None:
    method, function = read_row(APPS_METHOD), read_row(TACO)
    assert (method.kind, method.entry_point) == (ProblemKind.METHOD, "Solution().total")
    assert method.statement.endswith("def total(self, words: List[str]) -> int:")
    assert set(method.imports.splitlines()) == {"from typing import List", "from collections import Counter"}
    assert (function.kind, function.entry_point) == (ProblemKind.FUNCTION, "tail")
    assert function.golden[0] == GoldenCase("tail([1, 2, 3])", "[2, 3]")  # unwrapped, since all outputs are [..]


def test_without_starter_code_the_solution_shows_the_form() -> None:
    assert read_row(TACO | {"starter_code": ""}).entry_point == "tail"
    assert read_row(APPS_METHOD | {"starter_code": ""}).entry_point == "Solution().total"
    with pytest.raises(RefusedRow, match=r"no Python 3 solution that can be used; .* does not define Solution"):
        read_row(APPS_METHOD | {"solutions": json.dumps(["def total(words):\n    return 0\n"])})


def test_outputs_that_are_not_all_lists_of_one_item_are_taken_as_they_are() -> None:
    outputs = {"fn_name": "tail", "inputs": [[[1, 2]], [[1]]], "outputs": [[2], []]}
    assert [case.expected for case in read_row(TACO | {"input_output": json.dumps(outputs)}).golden] == ["[2]", "[]"]


def test_equal_questions_have_equal_ids_in_taco_and_others_other_ids() -> None:
    assert read_row(TACO).id == read_row(TACO | {"difficulty": "HARD"}).id
    assert read_row(TACO).id != read_row(TACO | {"question": "Return the rest."}).id


def test_long_tests_are_golden_but_no_examples() -> None:
    problem = read_row(APPS | {"input_output": input_output(inputs=["7" * 5_000], outputs=["1"])})
    assert (len(problem.golden), problem.examples) == (1, ())


def test_private_tests_of_live_code_bench_are_used_if_they_are_json_and_never_unpickled() -> None:
    assert len(read_row(LIVE_CODE_BENCH).golden) == 2
    assert read_row(LIVE_CODE_BENCH_METHOD).golden == (GoldenCase("Solution().scaled([1, 2], 3)", "[3, 6]"),)


@pytest.mark.parametrize(
    ("row", "reason", "refusal"),
    [
        (APPS | {"solutions": json.dumps(["print 1"])}, "no Python 3 solution .*Missing parentheses", "no solution"),
        (APPS | {"solutions": "[]"}, "no Python 3 solution; without", "no solution"),
        (APPS | {"question": "Print any of the numbers."}, "accepts several answers", "several right answers"),
        (APPS | {"question": "This is an interactive problem."}, "describes an interactive program", "interactive"),
        (APPS | {"question": "Read from the file doubles.in."}, "names an input or output file", "files"),
        (CODE_CONTESTS | {"input_file": "in.txt"}, "column 'input_file' names a file", "files"),
        (CODE_CONTESTS | {"solutions": {}}, "no Python 3 solution", "no solution"),
        (TACO | {"starter_code": "def tail(head: ListNode):\n"}, "'starter_code' names the class ListNode", "objects"),
    ],
)
def test_a_row_that_cannot_be_played_is_refused_with_its_cause(row: dict[str, Any], reason: str, refusal: str) -> None:
    with pytest.raises(RefusedRow, match=reason) as caught:
        read_row(row)
    assert caught.value.refusal is Refusal(refusal)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (APPS | {"problem_id": [1]}, "column 'problem_id' must be text, got list"),
        (APPS | {"solutions": "{"}, "column 'solutions' is not JSON"),
        (APPS | {"solutions": "7"}, "column 'solutions' must be a list.*, got int"),
        (APPS | {"solutions": "[7]"}, "solution.* must be text, got int"),
        (APPS | {"input_output": "[" * 100_000}, "column 'input_output' is not JSON: "),
        (APPS | {"input_output": "9" * 5_000}, "column 'input_output' is not JSON: Exceeds the limit"),
        (APPS | {"input_output": "[]"}, "column 'input_output' must be an object such as .*, got list"),
        (APPS | {"input_output": input_output(inputs=None)}, "inputs and outputs must be lists, got NoneType"),
        (APPS | {"input_output": input_output(outputs=[])}, "has 1 inputs, but 0 outputs"),
        (APPS | {"input_output": input_output(inputs=[7])}, "an input of column 'input_output' must be text, got int"),
        (APPS | {"input_output": input_output(outputs=[["\0"]])}, "a line of an output .* contains a NUL character"),
        (TACO | {"input_output": input_output(fn_name=["tail"])}, "fn_name of .* must be text, got list"),
        (TACO | {"input_output": input_output(fn_name="tail")}, "a call must be a list of arguments, got str"),
        (tail_of(DEEP), "contains a value nested deeper than 64 levels"),
        (tail_of("NaN"), "is not JSON: NaN is not a JSON value"),
        (
            CODE_CONTESTS | {"solutions": {"language": 3, "solution": ["x"]}},
            "'language' of 'solutions' must be .*, got int",
        ),
        (CODE_CONTESTS | {"public_tests": {"input": 3, "output": []}}, "must be lists, got int"),
        (LIVE_CODE_BENCH | {"public_test_cases": "[1]"}, "column 'public_test_cases' must be a list such .*, got list"),
        (LIVE_CODE_BENCH | {"metadata": "[]"}, "column 'metadata' must be an object such as .*, got list"),
        (LIVE_CODE_BENCH_METHOD | {"metadata": '{"func_name": "other"}'}, "does not define other"),
        (
            LIVE_CODE_BENCH_METHOD
            | {"public_test_cases": json.dumps([{"input": "oops", "output": "1", "testtype": "functional"}])},
            "an input line is not JSON",
        ),
    ],
)
def test_a_hostile_row_gets_one_sentence(row: dict[str, Any], reason: str) -> None:
    with pytest.raises(BrokenInput, match=reason) as caught:
        read_row(row)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
