from __future__ import annotations

import gzip
import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env.errors import BrokenInput, MissingExtra, UserError
from codea1_env.problems import GoldenCase, GoldenHarness, Problem, WrongProgram, dump_jsonl, humaneval, load_file
from codea1_env.problems.layouts import LAYOUTS, read_row
from tests.support.data_set_rows import EVALPLUS, HUMANEVAL, JSON_VALUES, OWN

FULL = Problem(
    id="mine/ä",
    statement="Double it.\n'''\"\"\"",
    entry_point="f",
    solution="import math\ndef f(x):\n    return 2 * x\n",
    golden=(GoldenCase("f(1)", "2", ("import math",)), GoldenHarness("def check(candidate): ...")),
    imports="import math",
    examples=("assert f(2) == 4",),
    source="me",
    licence="MIT",
    wrong_programs=(WrongProgram("def f(x):\n    return x", "forgets to", 1),),
)
TRAINING = {
    "prompt": [{"role": "user", "content": "Question:\nDouble x."}],
    "clean_description": "Double x.",
    "GT_code": "def helper(x):\n    return x\n\ndef f(x):\n    return helper(x) * 2\n",
    "GT_test": ["assert f(1) == 2\nassert f(2) == 4", "from solution import f\ndef test_it():\n    assert f(3) == 6"],
    "data_source": "kodcode_light",
    "extra_info": {"question_id": "k/1"},
}
VALIDATION = {
    "problem": "def f(x):\n",
    "GT_code": "    return x\n",
    "test": "def check(candidate):\n    assert candidate(1) == 1\n",
    "data_source": "humanevalplus",
    "extra_info": {"question_id": "v/1", "function_name": "f", "imports": ""},
}


def as_bytes(row: Any) -> bytes:
    return row if isinstance(row, bytes) else (row if isinstance(row, str) else json.dumps(row)).encode()


FORMS = ("jsonl", "jsonl.gz", "json", "indented", "parquet", "crlf", "bom")


@pytest.mark.parametrize(
    ("form", "row"), [*((form, OWN) for form in FORMS), ("parquet", TRAINING), ("parquet", VALIDATION)]
)
def test_rows_are_read_from_every_kind_of_file(tmp_path: Path, form: str, row: dict[str, Any]) -> None:
    path = tmp_path / f"rows.{form}"
    line = json.dumps(row)
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist([row]), path)
    else:
        texts = {"json": f" [{line}]\n", "indented": json.dumps([row], indent=2)}
        text = (texts | {"crlf": f"{line}\r\n\r\n", "bom": f"\ufeff{line}"}).get(form, f"{line}\n")
        path.write_bytes(gzip.compress(text.encode(), mtime=0) if form.endswith("gz") else text.encode())
    assert load_file(path).problems == (read_row(row),)


def test_a_training_row_takes_its_entry_point_and_both_kinds_of_tests_from_the_code() -> None:
    problem = read_row(TRAINING)
    assert (problem.id, problem.entry_point, problem.statement) == ("k/1", "f", "Double x.")
    assert problem.licence == "CC-BY-NC-4.0"
    assert problem.golden[:2] == (GoldenCase("f(1)", "2"), GoldenCase("f(2)", "4"))
    assert isinstance(problem.golden[2], GoldenHarness)


@pytest.mark.parametrize(
    ("code", "tests", "expected"),
    [
        ("def a(): ...\ndef b(): ...", ["assert a() == 1"], "a"),
        ("def a(): ...\ndef b(): ...", ["from solution import a\nassert b(a()) == b(1)", "assert a() == 1"], "a"),
        ("def a(): ...\ndef b(): ...", ["assert c() == 1"], "b"),
    ],
)
def test_the_entry_point_is_what_tests_use_most_else_the_last(code: str, tests: list[str], expected: str) -> None:
    assert read_row({**TRAINING, "GT_code": code, "GT_test": tests}).entry_point == expected


def test_a_training_row_without_description_takes_the_question_from_the_chat() -> None:
    assert read_row({**TRAINING, "clean_description": None}).statement == "Double x."


def test_a_validation_row_whose_name_is_that_of_a_helper_gets_the_function_that_is_tested() -> None:
    code = "def helper(x):\n    return x\ndef f(x):\n    return helper(x)\n"
    test = "def check(helper):\n    assert f(1) == 1\n"
    extra = {"question_id": "v/1", "function_name": "helper", "imports": ""}
    row = {**VALIDATION, "GT_code": code, "test": test, "extra_info": extra}
    assert read_row(row).entry_point == "f"
    assert read_row({**row, "test": "def check(helper):\n    assert helper(1) == 1\n"}).entry_point == "helper"


def test_problems_survive_being_written_and_read(tmp_path: Path) -> None:
    problems = (FULL, *humaneval.load()[:20])
    for name in ("problems.jsonl", "problems.jsonl.gz"):
        dump_jsonl(problems, tmp_path / name)
        assert load_file(tmp_path / name).problems == problems
    with pytest.raises(UserError, match="cannot be written"):
        dump_jsonl(problems, tmp_path / "no_folder" / "problems.jsonl")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["problems.jsonl", "problems.jsonl.gz"]


def test_golden_tests_of_our_own_layout_may_be_plain_asserts() -> None:
    problem = read_row({**OWN, "golden": ["assert f(1) == 2", {"source": "x"}]})
    assert problem.golden == (GoldenCase("f(1)", "2"), GoldenHarness("x"))


BROKEN: list[tuple[Any, str]] = [
    (b"\xff\xfe", "it is not JSON: 'utf-8' codec"),
    ("not json", "is not JSON"),
    ('{"id": ', "is not JSON"),
    ("[" * 100_000, "is not JSON"),
    ("7", "expected an object.*, got int"),
    ("null", "expected an object.*, got NoneType"),
    ("{}", "is empty"),
    ({"a": 1, "b": 2}, "unknown layout with the columns a, b; the nearest known layout, codea1-env, also needs id,"),
    (OWN, "id 'mine/1' is already used at rows.jsonl line 1"),
    ({**OWN, "id": 7}, "column 'id' must be text, got int"),
    ({name: OWN[name] for name in OWN if name != "solution"}, "column 'solution' is missing"),
    ({**{name: OWN[name] for name in OWN if name != "solution"}, "solutoin": "x"}, "did you mean 'solution'"),
    ({**OWN, "id": "2", "statement": " \n"}, "column 'statement' is empty"),
    ({**OWN, "id": "2", "statement": "\0"}, "contains a NUL character"),
    ({**OWN, "id": "2", "statement": "\ud83d"}, "half of a surrogate pair"),
    ({**OWN, "id": "2", "solution": "def f(x:"}, "column 'solution' is not Python: .*line 1"),
    ({**OWN, "id": "2", "solution": "def f(): return\nreturn"}, "is not Python: 'return' outside function"),
    ({**OWN, "id": "2", "solution": "def g(x): ..."}, "the solution does not define f"),
    ({**OWN, "id": "2", "entry_point": "f()"}, "does not define f"),
    ({**OWN, "id": "2", "golden": "assert f(1) == 2"}, "column 'golden' must be a list.*, got str"),
    ({**OWN, "id": "2", "examples": [1]}, "must be text, got int"),
    ({**OWN, "id": "2", "wrong_programs": [{"program": "", "note": "", "subtlety": 9}]}, "subtlety of 1 to 4"),
    ({**TRAINING, "GT_test": None}, "column 'GT_test' must be a list of test snippets, got NoneType"),
    ({**TRAINING, "GT_test": []}, "column 'GT_test' is empty"),
    ({**TRAINING, "GT_test": [b"".hex(), "assert f(1) == 2"]}, "snippet 1 of GT_test tests nothing"),
    ({**TRAINING, "GT_test": ["assert f(1) =="]}, "snippet 1 of GT_test is not Python"),
    ({**TRAINING, "GT_code": "x = 1"}, "defines no top-level function"),
    ({**TRAINING, "extra_info": {"question_id": "k", "function_name": "g"}}, "does not define g"),
    ({**TRAINING, "extra_info": "k"}, "must be an object.*, got str"),
    ({**TRAINING, "clean_description": "", "prompt": []}, "unknown layout|states the problem"),
    ({**VALIDATION, "test": "def check(:"}, "column 'test' is not Python"),
    ({**HUMANEVAL, "canonical_solution": "return 1"}, "is not Python"),
    ({**EVALPLUS, "base_input": 3}, "must be a list of argument lists"),
]


@pytest.mark.parametrize(("row", "reason"), BROKEN)
def test_a_broken_row_is_skipped_with_its_place_or_stops_a_strict_reader(tmp_path: Path, row: Any, reason: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\n".join(map(as_bytes, (OWN, row, {**OWN, "id": "last"}))))
    found = load_file(path)
    assert [problem.id for problem in found] == ["mine/1", "last"]
    (skipped,) = found.skipped
    assert skipped.place == "rows.jsonl line 2"
    with pytest.raises(BrokenInput, match=reason) as strict:
        load_file(path, strict=True)
    assert str(strict.value) == f"{skipped.place}: {skipped.reason}"


def test_bytes_and_bad_text_in_parquet_cost_only_their_rows(tmp_path: Path) -> None:
    columns: dict[str, Any] = {name: [OWN[name]] * 3 for name in OWN}
    columns["id"] = ["1", "2", "3"]
    bad = pa.array([b"good", b"\xff", b"good"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({**columns, "source": bad}), tmp_path / "text.parquet")
    found = load_file(tmp_path / "text.parquet")
    assert [problem.id for problem in found] == ["1", "3"]
    assert (found.skipped[0].place, "cannot be decoded" in found.skipped[0].reason) == ("text.parquet row 2", True)
    pq.write_table(pa.table({**columns, "source": pa.array([None, b"x", None])}), tmp_path / "bytes.parquet")
    assert "column 'source' must be text, got bytes" in load_file(tmp_path / "bytes.parquet").skipped[0].reason


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (b"\n \n", "no rows were found"),
        (b"[]", "no rows were found"),
        (b'[{"id": 1}', "begins like a JSON array but is not one"),
        (json.dumps(OWN, indent=1), "one JSON object over several lines: write each row on one line"),
        (b'task_id,prompt\n1,"x, y"\n', "it is CSV, expected JSON lines, a JSON array or Parquet"),
        (b'\xef\xbb\xbf"task id";"prompt"\r\n1;2\r\n', "it is CSV"),
        (gzip.compress(b"\ntask_id\tprompt\n1\t2\n", mtime=0), "it is CSV"),
        (b"\x7fELF\x00\x00", "neither Parquet, gzip nor UTF-8 text"),
        (gzip.compress(b"x" * 1000, mtime=0)[:20], "gzip data is damaged or cut off"),
        (b"\x1f\x8bgarbage", "gzip data is damaged or cut off"),
        (b"PAR1garbage", "Parquet data is damaged or cut off"),
        (b"hello\nworld", "none of its 2 rows is a usable problem; the first, .*line 1: it is not JSON"),
        ("é".encode("latin-1"), "line 1: it is not JSON: 'utf-8' codec"),
        (json.dumps(OWN).encode("utf-16"), "neither Parquet, gzip nor UTF-8 text: unpack or convert it"),
        ({**OWN, "solution": None}, "line 1: column 'solution' is null"),
        ({key: OWN[key] for key in ("id", "solution", "entry_point")}, "column 'statement' is missing"),
    ],
)
def test_a_file_without_a_usable_row_is_one_clear_sentence(tmp_path: Path, content: Any, reason: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(as_bytes(content))
    with pytest.raises(BrokenInput, match=reason) as caught:
        load_file(path)
    assert "rows.jsonl" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [("none.jsonl", "no such file"), ("", "a folder, not a file"), ("a\0b", "cannot be read"), ("pipe", "not a file")],
)
def test_what_is_not_a_file_is_said_so(tmp_path: Path, name: str, said: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BrokenInput, match=said):
        load_file(tmp_path / name)


def test_parquet_without_pyarrow_names_the_pip_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pylist([OWN]), path)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"\[data\]"):
        load_file(path)


@given(
    st.sampled_from(LAYOUTS).flatmap(lambda layout: st.fixed_dictionaries(dict.fromkeys(layout.columns, JSON_VALUES)))
)
def test_no_row_raises_anything_but_a_user_error(row: dict[str, Any]) -> None:
    try:
        problem = read_row(row)
    except UserError:
        return
    assert isinstance(problem, Problem)


@pytest.mark.slow
def test_official_validation_rows_are_read(shared_data: Path) -> None:
    of = {problem.id: problem for problem in load_file(shared_data / "evalplus_dev.parquet", strict=True)}
    assert len(of) == 271
    assert sum(1 for problem in of.values() if problem.examples) >= 250
    assert of["MBPP/797"].entry_point == "sum_in_range"  # its function_name is that of a helper
    assert of["HumanEval/24"].solution.count("def largest_divisor") == 1
    assert of["MBPP/82"].imports == "import math"
    assert {problem.licence for problem in of.values()} == {"MIT AND Apache-2.0", "CC-BY-4.0 AND Apache-2.0"}


def test_a_file_unpacks_to_a_bounded_number_of_bytes_and_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codea1_env.problems.files.MOST_BYTES", 1000)
    path = tmp_path / "bomb.jsonl.gz"
    path.write_bytes(gzip.compress(b" " * (1 << 28), 9, mtime=0))
    tracemalloc.start()
    with pytest.raises(BrokenInput, match=r"bomb\.jsonl\.gz: expected at most 1,000 bytes, got more"):
        load_file(path)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    value = "x" * 100
    pq.write_table(pa.table({"statement": [value] * 20}), tmp_path / "x.parquet")
    with pytest.raises(BrokenInput, match=r"x\.parquet: expected rows of at most 1,000 bytes together, got more"):
        load_file(tmp_path / "x.parquet")
    monkeypatch.setattr("codea1_env.problems.files._MOST_ROWS", 3)
    path.write_bytes(b"{}\n" * 4)
    with pytest.raises(BrokenInput, match="expected at most 3 rows, got more"):
        load_file(path)
