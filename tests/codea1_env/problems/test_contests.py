from __future__ import annotations

import json

import pytest

from codea1_env.facts.problem_kinds import ProblemKind
from codea1_env.problems import GoldenCase
from codea1_env.problems.layouts import read_row
from codea1_env.problems.refusals import RefusedRow
from tests.support.data_set_rows import APPS, APPS_METHOD, LIVE_CODE_BENCH, LIVE_CODE_BENCH_METHOD, TACO


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
    problem = read_row(APPS | {"input_output": json.dumps({"inputs": ["7" * 5_000], "outputs": ["1"]})})
    assert (len(problem.golden), problem.examples) == (1, ())


def test_private_tests_of_live_code_bench_are_used_if_they_are_json_and_never_unpickled() -> None:
    assert len(read_row(LIVE_CODE_BENCH).golden) == 2
    assert read_row(LIVE_CODE_BENCH_METHOD).golden == (GoldenCase("Solution().scaled([1, 2], 3)", "[3, 6]"),)
