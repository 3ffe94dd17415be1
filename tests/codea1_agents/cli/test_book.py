from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codea1_env.book.store import MistakeBook


@pytest.fixture(scope="module")
def played(recorded: Callable[[str], Path]) -> Path:
    """A run whose program always fails."""
    return recorded("play -p starter --coder random --tester boundary --limit 2 -n 3 --show 0")


def size(path: Path) -> int:
    with MistakeBook(path, create=False) as book:
        return book.size()


def test_the_most_frequent_cases_come_first(codea1: Callable[..., Any], one_object: Any, run: Path) -> None:
    result = codea1("book", "show", run, "--json", "--top", 100)
    assert result.stderr == ""
    data = one_object(result.stdout)
    frequencies = [entry["frequency"] for entry in data["entries"]]
    assert frequencies == sorted(frequencies, reverse=True)
    assert frequencies[0] > frequencies[-1]
    assert len(frequencies) == data["size"] == size(run / "book.sqlite")


def test_a_book_can_be_named_by_its_file_and_cut_to_a_problem_and_a_number(
    codea1: Callable[..., Any], run: Path
) -> None:
    with MistakeBook(run / "book.sqlite") as book:
        problem = book.problem_ids()[1]
    result = codea1("book", "show", run / "book.sqlite", "--problem", problem, "--top", 1)
    assert result.exit_code == 0
    assert result.stdout.count(problem) == 1
    assert "1 of " in result.stdout


def test_a_book_becomes_the_releases_json_and_comes_back(
    codea1: Callable[..., Any], one_object: Any, run: Path
) -> None:
    result = codea1("book", "export", run, "--out", "official.json", "--json")
    n = size(run / "book.sqlite")
    assert one_object(result.stdout)["written"] == n
    data = one_object(codea1("book", "import", "official.json", "--out", "b.sqlite", "-p", "starter", "--json").stdout)
    assert (data["added"], data["size"], data["skipped"]) == (n, n, [])
    assert size(Path("b.sqlite")) == n


def test_merging_adds_counts_up_in_a_new_book(codea1: Callable[..., Any], one_object: Any, run: Path) -> None:
    shutil.copy(run / "book.sqlite", "other.sqlite")
    data = one_object(codea1("book", "merge", run, "other.sqlite", "--out", "both.sqlite", "--json").stdout)
    assert data["size"] == size(run / "book.sqlite")
    with MistakeBook("both.sqlite") as both, MistakeBook(run / "book.sqlite") as one:
        frequencies = [sum(stored.entry.frequency for stored in book.entries()) for book in (both, one)]
    assert frequencies[0] == 2 * frequencies[1]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("book show lost.sqlite", "there is no such file"),
        ("book show .", "there is no such file"),
        ("book show my_agents.py", "my_agents.py"),
        ("book show run --problem starter/lost", "unknown problem of this book 'starter/lost'"),
        ("book export run --out nowhere/o.json", "nowhere/o.json"),
        ("book merge run lost.sqlite --out both.sqlite", "there is no such file"),
        ("book merge run run/book.sqlite --out both.sqlite", "run/book.sqlite is named twice"),
        ("book merge run --out run/book.sqlite", "exists already"),
        ("book merge run --out nowhere/both.sqlite", "nowhere"),
        ("book import lost.json --out b.sqlite", "lost.json: no such file"),
        ("book import my_agents.py --out b.sqlite", "my_agents.py"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(
    codea1: Callable[..., Any], run: Path, folder: Path, line: str, said: str
) -> None:
    before = size(run / "book.sqlite")
    result = codea1(*line.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert said in result.stderr
    assert size(run / "book.sqlite") == before
    assert list(Path().glob("b*.sqlite*")) == []


def test_lines_that_cannot_be_read_are_noted_and_counted(codea1: Callable[..., Any], one_object: Any) -> None:
    cases = [{"testcase": "assert f(1) == <object>", "frequency": 1}, {"testcase": "assert f(1) == 2", "frequency": 3}]
    Path("official.json").write_text(json.dumps({"P": {"attack_testcases": cases, "blacklisted": False}}))
    result = codea1("book", "import", "official.json", "--out", "b.sqlite", "--json")
    assert len(one_object(result.stdout)["skipped"]) == 1
    assert "note: skipped " in result.stderr
    assert size(Path("b.sqlite")) == 1


def test_an_import_that_fails_leaves_an_old_book_as_it_is(codea1: Callable[..., Any], run: Path) -> None:
    before = size(run / "book.sqlite")
    assert codea1("book", "import", "my_agents.py", "--out", run / "book.sqlite").exit_code == 2
    assert size(run / "book.sqlite") == before


def test_a_run_that_may_only_be_looked_at_can_be_shown_exported_merged_and_rescored(
    codea1: Callable[..., Any], played: Path, open_folder: Path, powerless: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, mine = open_folder / "run", open_folder / "mine"
    shutil.copytree(played, run)
    mine.mkdir(mode=0o777)
    mine.chmod(0o777)
    monkeypatch.chdir(mine)
    for file in run.iterdir():
        file.chmod(0o444)
    run.chmod(0o555)
    before = sorted(file.name for file in run.iterdir())
    lines = (
        "book show {}",
        "book export {} --out o.json",
        "book merge {} --out m.sqlite",
        "rescore {}",
    )
    with powerless():
        for line in lines:
            result = codea1(*line.format(run).split())
            assert result.exit_code == 0, (line, result.stderr)
    assert sorted(file.name for file in run.iterdir()) == before
    run.chmod(0o755)


def test_a_book_behind_a_closed_folder_is_one_sentence(
    codea1: Callable[..., Any], open_folder: Path, powerless: Any
) -> None:
    closed = open_folder / "closed"
    closed.mkdir(mode=0)
    lines = (
        "book show {}/b.sqlite",
        "book merge {0}/b.sqlite --out {0}/c.sqlite",
        "book import {}/o.json --out x.sqlite",
    )
    for line in lines:
        with powerless():
            result = codea1(*line.format(closed).split())
        assert (result.exit_code, result.stdout) == (2, ""), line
        assert "Permission denied" in result.stderr
