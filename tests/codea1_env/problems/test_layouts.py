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
from codea1_env.sandbox.interface import Sandbox
from tests.support.data_set_rows import (
    APPS,
    EVALPLUS,
    JSON_VALUES,
    KODCODE,
    LEETCODE,
    LIVE_CODE_BENCH,
    MBPP,
    PUBLISHED,
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
    expected = [CheckStatus.UNTESTED if row is ULT else CheckStatus.OK for _, row in ROWS]
    assert [(name, check.status, check.detail) for (name, _), check in zip(ROWS, found, strict=True)] == [
        (name, status, "it has no golden tests" if status is CheckStatus.UNTESTED else "")
        for (name, _), status in zip(ROWS, expected, strict=True)
    ]


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
def test_a_published_row_with_an_empty_column_says_what_it_lacks(
    row: dict[str, Any], reason: str, cause: Refusal, tmp_path: Path
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(f"{json.dumps(MBPP)}\n{json.dumps(row)}\n")
    (skipped,) = load_file(path).skipped
    assert skipped.place == "rows.jsonl line 2"
    assert reason in skipped.reason
    assert skipped.cause is cause


BROKEN = {
    "KodCode": {
        "got column 'style' = 'online_judge'": {"style": "online_judge"},
        "column 'test' is not Python": {"test": "def test_it(:"},
        "column 'test' tests nothing": {"test": "x = 1"},
        "column 'solution' is not Python": {"solution": "def doubled(:"},
        "column 'question_id' must be text, got dict": {"question_id": {}},
    },
    "LeetCodeDataset": {
        "column 'entry_point' must be a method such as .*, got 'doubleSum'": {"entry_point": "doubleSum"},
        "the solution does not define doubleSum": {"completion": "class Solution:\n    pass"},
        "the solution does not define Solution": {"completion": "def doubleSum(): pass"},
        "tests nothing": {"test": "x = 1"},
    },
    "MBPP": {
        "column 'test_list' must be a list.*, got int": {"test_list": 7},
        "column 'test_list' is empty": {"test_list": []},
        "an item of column 'test_list' must be text, got int": {"test_list": [7]},
        "test 2 is not Python|test 3 is not Python": {"challenge_test_list": ["oops("]},
        "defines no top-level function": {"test_list": ["assert triple(1) == 3"], "code": "triple = 3"},
        "column 'task_id' is null": {"task_id": None, "text": "x"},
    },
    "HumanEval": {"does not define g": {"entry_point": "g"}},
    "BigCodeBench": {"does not define other": {"entry_point": "other"}},
    "ULT": {"the solution does not define leaf": {"func_name": "leaf"}},
}


@pytest.mark.parametrize(
    ("name", "reason", "changes"),
    [(name, reason, changes) for name, rows in BROKEN.items() for reason, changes in rows.items()],
)
def test_a_broken_row_gets_one_sentence(name: str, reason: str, changes: dict[str, Any]) -> None:
    with pytest.raises(BrokenInput, match=reason):
        read_row(PUBLISHED[name][0] | changes)


@given(st.sampled_from([row for _, row in ROWS]), st.data())
def test_a_published_row_with_other_values_raises_nothing_but_user_errors(
    row: dict[str, Any], data: st.DataObject
) -> None:
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


KEPT_IN_META = {name: LEETCODE[name] for name in ("problem_description", "starter_code") if name in LEETCODE}
RELATIVES = {
    "ULT with asserts": (ULT | {"test_list": ["assert f(1) == 3"]}, ULT),
    "LeetCodeDataset v0.2": (
        {name: value for name, value in LEETCODE.items() if name not in KEPT_IN_META} | {"meta": KEPT_IN_META},
        LEETCODE,
    ),
    "LeetCodeDataset v0.2 as text": (
        {name: value for name, value in LEETCODE.items() if name not in KEPT_IN_META}
        | {"meta": json.dumps(KEPT_IN_META)},
        LEETCODE,
    ),
    "KodCode as published": (
        {name: value for name, value in KODCODE.items() if name not in ("test", "test_info")}
        | {"test_code": KODCODE["test"]},
        KODCODE,
    ),
    "EvalPlus with HumanEval's tests": (EVALPLUS | {"test": "def check(candidate): ..."}, EVALPLUS),
}


@pytest.mark.parametrize(("row", "same_as"), RELATIVES.values(), ids=RELATIVES)
def test_other_versions_of_a_data_set_give_the_same_problem(row: dict[str, Any], same_as: dict[str, Any]) -> None:
    assert read_row(row) == read_row(same_as)


def test_tests_that_build_objects_of_the_solutions_class_are_unsupported(sandbox: Sandbox) -> None:
    code = "class Pair:\n    def __init__(self, a):\n        self.a = a\ndef first(p):\n    return p.a\n"
    row = MBPP | {"code": code, "test_list": ["assert first(Pair(3)) == 3"], "challenge_test_list": []}
    (found,) = check_problems([read_row(row)], sandbox)
    assert (found.status, "class Pair" in found.detail) == (CheckStatus.UNSUPPORTED, True)
