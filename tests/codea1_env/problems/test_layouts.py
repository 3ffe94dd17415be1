from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env.errors import BrokenInput, UserError
from codea1_env.judging.problem_check import CheckStatus, check_problems
from codea1_env.problems import load_file
from codea1_env.problems.layouts import LAYOUTS, FoundRow, read_row, read_rows
from codea1_env.problems.problem import Refusal
from codea1_env.rounds.rounds import suite_of
from codea1_env.rules.ruleset import Reading
from codea1_env.sandbox.interface import Sandbox
from tests.support.data_set_rows import (
    APPS,
    BIGCODEBENCH,
    CODE_CONTESTS,
    EVALPLUS,
    HUMANEVAL,
    JSON_VALUES,
    KODCODE,
    LEETCODE,
    LIVE_CODE_BENCH,
    LIVE_CODE_BENCH_METHOD,
    MBPP,
    PUBLISHED,
    TACO,
    ULT,
)

ROWS = [(name, row) for name, rows in PUBLISHED.items() for row in rows]


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_the_published_columns_of_a_data_set_fit_one_layout_only(name: str, row: dict[str, Any]) -> None:
    assert [layout.name for layout in LAYOUTS if layout.columns <= row.keys()] == [name]


def test_the_columns_of_no_layout_contain_those_of_another() -> None:
    assert [(a.name, b.name) for a in LAYOUTS for b in LAYOUTS if a is not b and a.columns <= b.columns] == []


def test_the_solutions_of_all_layouts_pass_their_own_tests_in_the_sandbox(sandbox: Sandbox) -> None:
    found = check_problems([read_row(row) for _, row in ROWS], sandbox, runs=1)
    for (name, row), check in zip(ROWS, found, strict=True):
        expected = (CheckStatus.UNTESTED, "it has no golden tests") if row is ULT else (CheckStatus.OK, "")
        assert (check.status, check.detail) == expected, name


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_rows_are_the_same_from_jsonl_and_parquet(name: str, row: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "rows.parquet")
    assert load_file(tmp_path / "rows.jsonl").problems == load_file(tmp_path / "rows.parquet").problems


@pytest.mark.parametrize(
    ("row", "reason", "cause"),
    [
        (APPS | {"solutions": ""}, "column 'solutions' is empty; without a solution", Refusal.NO_SOLUTION),
        (MBPP | {"code": None}, "column 'code' is empty; without a solution", Refusal.NO_SOLUTION),
        (KODCODE | {"solution": ""}, "column 'solution' is empty", Refusal.NO_SOLUTION),
        (LIVE_CODE_BENCH | {"solution": None}, "no solutions: add the column 'solution'", Refusal.NO_SOLUTION),
        (APPS | {"input_output": ""}, "column 'input_output' is empty", Refusal.BROKEN),
    ],
)
def test_a_row_with_an_empty_column_says_what_it_lacks(row: Any, reason: str, cause: Refusal, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(f"{json.dumps(MBPP)}\n{json.dumps(row)}\n")
    (skipped,) = load_file(path).skipped
    assert skipped.place == "rows.jsonl line 2"
    assert reason in skipped.reason
    assert skipped.cause is cause


DEEP = "[" * 99 + "]" * 99
OOPS = json.dumps([{"input": "oops", "output": "1", "testtype": "functional"}])


def input_output(**changes: Any) -> str:
    return json.dumps({"inputs": ["2\n"], "outputs": ["4\n"]} | changes)


def tail_of(argument: str) -> dict[str, Any]:
    """A row whose only test calls its function with this JSON."""
    return TACO | {"input_output": f'{{"fn_name": "tail", "inputs": [[{argument}]], "outputs": [1]}}'}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (KODCODE | {"style": "online_judge"}, "got column 'style' = 'online_judge'"),
        (KODCODE | {"test": "def test_it(:"}, "column 'test' is not Python"),
        (KODCODE | {"test": "x = 1"}, "column 'test' tests nothing"),
        (KODCODE | {"solution": "def doubled(:"}, "column 'solution' is not Python"),
        (KODCODE | {"question_id": {}}, "column 'question_id' must be text, got dict"),
        (LEETCODE | {"entry_point": "doubleSum"}, "column 'entry_point' must be a method such as .*, got 'doubleSum'"),
        (LEETCODE | {"completion": "class Solution:\n    pass"}, "the solution does not define doubleSum"),
        (LEETCODE | {"completion": "def doubleSum(): pass"}, "the solution does not define Solution"),
        (LEETCODE | {"test": "x = 1"}, "tests nothing"),
        (MBPP | {"test_list": 7}, "column 'test_list' must be a list.*, got int"),
        (MBPP | {"test_list": []}, "column 'test_list' is empty"),
        (MBPP | {"test_list": [7]}, "an item of column 'test_list' must be text, got int"),
        (MBPP | {"challenge_test_list": ["oops("]}, "test 2 is not Python|test 3 is not Python"),
        (MBPP | {"test_list": ["assert triple(1) == 3"], "code": "triple = 3"}, "defines no top-level function"),
        (MBPP | {"task_id": None, "text": "x"}, "column 'task_id' is null"),
        (HUMANEVAL | {"entry_point": "g"}, "does not define g"),
        (BIGCODEBENCH | {"entry_point": "other"}, "does not define other"),
        (ULT | {"func_name": "leaf"}, "the solution does not define leaf"),
        (EVALPLUS | {"base_input": "1"}, "must be a list of argument lists"),
        (EVALPLUS | {"base_input": [1]}, "must be a list of argument lists"),
        (EVALPLUS | {"atol": "small"}, "must be a number, got str"),
        (EVALPLUS | {"canonical_solution": "return"}, "is not Python"),
        (EVALPLUS | {"entry_point": "median"}, "does not define median"),
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
        (tail_of("NaN"), ": expected finite numbers, got NaN"),
        (CODE_CONTESTS | {"solutions": {"language": 3, "solution": ["x"]}}, "'language' of .* must be .*, got int"),
        (CODE_CONTESTS | {"public_tests": {"input": 3, "output": []}}, "must be lists, got int"),
        (LIVE_CODE_BENCH | {"public_test_cases": "[1]"}, "column 'public_test_cases' must be a list such .*, got list"),
        (LIVE_CODE_BENCH | {"metadata": "[]"}, "column 'metadata' must be an object such as .*, got list"),
        (LIVE_CODE_BENCH_METHOD | {"metadata": '{"func_name": "other"}'}, "does not define other"),
        (LIVE_CODE_BENCH_METHOD | {"public_test_cases": OOPS}, "an input line is not JSON"),
    ],
)
def test_a_broken_or_hostile_row_gets_one_sentence(row: dict[str, Any], reason: str) -> None:
    with pytest.raises(BrokenInput, match=reason) as caught:
        read_row(row)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


@given(st.sampled_from([row for _, row in ROWS]), st.data())
def test_a_row_with_other_values_raises_nothing_but_user_errors(row: dict[str, Any], data: st.DataObject) -> None:
    columns = data.draw(st.sets(st.sampled_from(sorted(row)), min_size=1, max_size=2))
    hostile = JSON_VALUES | JSON_VALUES.map(json.dumps)
    reason = "it is read"
    try:
        read_row(row | {column: data.draw(hostile) for column in columns})
    except UserError as error:
        reason = str(error)
    assert reason
    assert "\n" not in reason


def test_a_row_without_the_columns_of_any_layout_is_broken_and_the_nearest_is_named() -> None:
    row = {name: APPS[name] for name in ("problem_id", "question", "solutions", "url")}
    with pytest.raises(BrokenInput, match=r"the nearest known layout, APPS, also needs input_output$"):
        read_row(row)


def test_columns_that_nobody_uses_are_counted() -> None:
    rows = [FoundRow(str(n), MBPP | {"task_id": n, "difficulty": "hard", "note": ""}) for n in (1, 2)]
    assert read_rows("rows", rows, strict=True).notes == {"column 'difficulty' is not used": 2}


def without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


META = {name: LEETCODE[name] for name in ("problem_description", "starter_code")}
RELATIVES = {
    "ULT with asserts": (ULT | {"test_list": ["assert f(1) == 3"]}, ULT),
    "LeetCodeDataset v0.2": (without(LEETCODE, *META) | {"meta": META}, LEETCODE),
    "LeetCodeDataset v0.2 as text": (without(LEETCODE, *META) | {"meta": json.dumps(META)}, LEETCODE),
    "KodCode as published": (without(KODCODE, "test", "test_info") | {"test_code": KODCODE["test"]}, KODCODE),
    "EvalPlus with HumanEval's tests": (EVALPLUS | {"test": "def check(candidate): ..."}, EVALPLUS),
}


@pytest.mark.parametrize(("row", "same_as"), RELATIVES.values(), ids=RELATIVES)
def test_other_versions_of_a_data_set_give_the_same_problem(row: dict[str, Any], same_as: dict[str, Any]) -> None:
    assert read_row(row) == read_row(same_as)


def test_tests_that_build_objects_of_the_solutions_class_are_unsupported(sandbox: Sandbox) -> None:
    code = "class Pair:\n    def __init__(self, a):\n        self.a = a\ndef first(p):\n    return p.a\n"
    row = MBPP | {"code": code, "test_list": ["assert first(Pair(3)) == 3"], "challenge_test_list": []}
    (found,) = check_problems([read_row(row)], sandbox)
    assert (found.status, "use Pair of the solution" in found.detail) == (CheckStatus.UNSUPPORTED, True)


def test_tests_that_call_another_function_of_the_solution_are_unsupported(sandbox: Sandbox) -> None:
    code = "def gcd(a, b):\n    return b and gcd(b, a % b) or a\ndef lcm(a, b):\n    return a * b // gcd(a, b)\n"
    test = "def check(candidate):\n    assert lcm(4, 6) == 12\n"
    row = {
        "task_id": "m/1",
        "prompt": "def gcd(a, b): ...\n",
        "entry_point": "gcd",
        "canonical_solution": code,
        "test": test,
    }
    (found,) = check_problems([read_row(row)], sandbox)
    assert (found.status, "use lcm of the solution" in found.detail) == (CheckStatus.UNSUPPORTED, True)


@pytest.mark.parametrize("place", ["imports", "statement", "solution"])
@pytest.mark.parametrize(
    "golden",
    [
        {"expression": "f(3)", "expected": "Decimal('0.3')"},
        {"expression": "f(Decimal(3))", "expected": "Decimal('0.3')"},
        "assert f(3) == Decimal('0.3')",
        "def test():\n    assert f(Decimal(3)) == Decimal('0.3')",
    ],
)
def test_what_a_row_imports_is_known_to_its_tests(sandbox: Sandbox, place: str, golden: object) -> None:
    row = {"id": "m/0", "statement": "def f(n): ...\n", "entry_point": "f", "imports": "", "golden": [golden]}
    row |= {"solution": "def f(n):\n    import decimal\n    return decimal.Decimal(n) / 10\n"}
    row[place] = f"from decimal import Decimal\n{row[place]}"
    problem = read_row(row | {"examples": ["assert f(4) == Decimal('0.4')"]})
    (found,) = check_problems([problem], sandbox)
    assert (found.status, found.detail) == (CheckStatus.OK, "")
    suite = suite_of("assert f(5) == Decimal('0.5')", problem, Reading.STRICT)
    assert [case.imports for case in suite.cases] == ([] if place == "solution" else [("from decimal import Decimal",)])
