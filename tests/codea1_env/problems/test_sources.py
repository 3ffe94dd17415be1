from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from codea1_env.errors import BrokenInput, MissingExtra, UnknownName, UserError
from codea1_env.problems import Problem, ProblemSet, dump_jsonl, load_problems
from tests.support.folders import powerless

ONE = Problem("one", "One.", "f", "def f(): return 1", ())
TWO = Problem("two", "Two.", "f", "def f(): return 2", ())


def make() -> ProblemSet:
    return ProblemSet("made", (ONE, TWO))


MADE = make()
NUMBERS = [1, 2]


def test_a_limit_keeps_the_front() -> None:
    assert [problem.id for problem in load_problems("humaneval", limit=2)] == ["HumanEval/0", "HumanEval/1"]
    with pytest.raises(UserError, match="limit must be at least 1, got 0"):
        load_problems("humaneval", limit=0)


def test_a_set_stays_itself_and_any_iterable_becomes_one() -> None:
    assert load_problems(MADE) is MADE
    assert load_problems(iter([ONE, TWO])).problems == (ONE, TWO)


def test_a_module_attribute_may_be_a_set_or_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "some_problems", sys.modules[__name__])
    assert load_problems("some_problems:MADE") is MADE
    assert load_problems("some_problems:make").problems == MADE.problems


def test_a_path_may_be_text_or_a_path(tmp_path: Path) -> None:
    dump_jsonl(MADE, tmp_path / "made.jsonl")
    assert load_problems(str(tmp_path / "made.jsonl")).problems == MADE.problems
    assert load_problems(tmp_path / "made.jsonl").name == "made.jsonl"


def test_a_folder_gives_all_its_files_and_says_which_are_broken(tmp_path: Path) -> None:
    dump_jsonl([ONE], tmp_path / "a.jsonl")
    dump_jsonl([TWO, ONE], tmp_path / "b.jsonl.gz")
    (tmp_path / "c.json").write_bytes(b"")
    (tmp_path / "notes.txt").write_text("not read")
    found = load_problems(tmp_path)
    assert [problem.id for problem in found] == ["one", "two"]
    assert [row.place for row in found.skipped] == ["b.jsonl.gz line 2", "c.json"]
    with pytest.raises(BrokenInput, match=r"c\.json: the file is empty|is already used at a\.jsonl line 1"):
        load_problems(tmp_path, strict=True)
    (tmp_path / "empty").mkdir()
    with pytest.raises(BrokenInput, match="contains no problem files"):
        load_problems(tmp_path / "empty")


def test_a_dataset_without_the_package_names_the_pip_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra, match=r"\[datasets\]"):
        load_problems("hf:someone/something:train")
    (tmp_path / "dataset_info.json").write_text("{}")
    with pytest.raises(MissingExtra, match=r"\[datasets\]"):
        load_problems(tmp_path)


UNKNOWN = r"is empty: name one|it contains no problems|unknown problem source"


@pytest.mark.parametrize(
    ("source", "error", "said"),
    [
        *((each, UserError, UNKNOWN) for each in ("", " ", ProblemSet("none", ()), [], "é😀", "a\0b", "x" * 10_000)),
        ("humanevall", UnknownName, r"did you mean 'humaneval'.*starter.*path"),
        ("somewhere/train.parquet", BrokenInput, "no such file"),  # and not an unknown name
        (Path("humaneval"), BrokenInput, "no such file"),
        ([ONE, 2], UserError, "int is not a problem"),
        ("some_problems:NUMBERS", UserError, "int is not a problem"),
        ("no_such_module:x", UserError, "no_such_module"),
    ],
)
def test_what_is_no_source_is_refused(source: Any, error: Any, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "some_problems", sys.modules[__name__])
    with pytest.raises(error, match=said):
        load_problems(source)


def test_what_may_not_be_read_is_one_sentence(open_folder: Path) -> None:
    closed = open_folder / "closed"
    (closed / "inner").mkdir(parents=True)
    dump_jsonl([ONE], closed / "rows.jsonl")
    dump_jsonl([ONE], open_folder / "mine.jsonl")
    (open_folder / "mine.jsonl").chmod(0)
    closed.chmod(0)
    with powerless():
        for source in (closed, closed / "inner", closed / "rows.jsonl", open_folder / "mine.jsonl"):
            for spelt in (source, str(source)):
                with pytest.raises(BrokenInput, match=r"cannot be read .*Permission denied"):
                    load_problems(spelt)
    closed.chmod(0o755)


def test_a_file_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "target.jsonl")
    dump_jsonl([ONE, TWO], tmp_path / "link.jsonl")
    assert (tmp_path / "link.jsonl").is_symlink()
    assert len(load_problems(tmp_path / "target.jsonl")) == 2
