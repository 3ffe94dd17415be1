from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from codea1_env.book.store import MistakeBook
from tests.support.command_line import codea1, one_object, refused
from tests.support.folders import powerless


@pytest.fixture(scope="module")
def played(recorded: Callable[[str], Path]) -> Path:
    """A run whose program always fails."""
    return recorded("play -p starter --coder random --tester boundary --limit 2 -n 3 --show 0")


def size(path: Path) -> int:
    with MistakeBook(path, create=False) as book:
        return book.size()


def test_the_most_frequent_cases_come_first_and_a_book_can_be_cut_to_a_problem_and_a_number(run: Path) -> None:
    result = codea1("book", "show", run, "--json", "--top", 100)
    assert result.stderr == ""
    data = one_object(result.stdout)
    frequencies = [entry["frequency"] for entry in data["entries"]]
    assert frequencies == sorted(frequencies, reverse=True)
    assert frequencies[0] > frequencies[-1]
    assert len(frequencies) == data["size"] == size(run / "book.sqlite")
    with MistakeBook(run / "book.sqlite") as book:
        problem = book.problem_ids()[1]
    result = codea1("book", "show", run / "book.sqlite", "--problem", problem, "--top", 1)
    assert result.exit_code == 0
    assert result.stdout.count(problem) == 1
    (n,) = re.findall(r"^1 of (\d+) cases \(--top \1 shows all\), judged", result.stdout, re.MULTILINE)
    assert "--top" not in codea1("book", "show", run / "book.sqlite", "--problem", problem, "--top", n).stdout


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("longest_subsequence_of_a", "longest_subsequence_of_a"),
        ("the_longest_common_subsequence_of_two_lists", "the_longest_…of_two_lists"),
    ],
)
def test_no_name_is_broken_however_long_its_neighbours_are(folder: Path, name: str, shown: str) -> None:
    values = [f"value {n}" for n in range(9)]
    row = {
        "id": f"a_collection_of_problems/{name}",
        "statement": f"def {name}(x: list[str]) -> list[str]: ...",
        "entry_point": name,
        "solution": f"def {name}(x: list[str]) -> list[str]:\n    return x + ['the end']",
        "examples": [f"assert {name}({values}) == {[*values, 'the end']}"],
    }
    (folder / "mine.jsonl").write_text(json.dumps(row))
    play = ("play", "-p", "mine.jsonl", "--coder", "random", "--tester", "boundary", "-n", 1, "--out", "long")
    assert codea1(*play).exit_code == 0
    lines = codea1("book", "show", "long", "--problem", row["id"]).stdout.splitlines()
    assert max(map(len, lines)) <= 100
    rows = [line.split() for line in lines if line.startswith("a_co")]
    assert len(rows) == size(folder / "long" / "book.sqlite") > 0
    for problem, test, *_ in rows:
        assert len(problem) == 25
        assert problem.startswith("a_collection…")
        assert problem.endswith(name[-12:])
        assert test.startswith(f"{shown}(")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("book show lost.sqlite", "no such file"),
        ("book show .", "no such file"),
        ("book show my_agents.py", "my_agents.py"),
        ("book show run --problem starter/lost", "unknown problem of this book 'starter/lost'"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(run: Path, folder: Path, line: str, said: str) -> None:
    before = size(run / "book.sqlite")
    assert said in refused(*line.split())
    assert size(run / "book.sqlite") == before


def test_a_run_that_may_be_read_can_be_shown(played: Path, open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, mine = open_folder / "run", open_folder / "mine"
    shutil.copytree(played, run)
    mine.mkdir(mode=0o777)
    mine.chmod(0o777)
    monkeypatch.chdir(mine)
    for file in run.iterdir():
        file.chmod(0o444)
    run.chmod(0o555)
    before = sorted(file.name for file in run.iterdir())
    (mine / "closed").mkdir(mode=0)
    with powerless():
        result = codea1("book", "show", run)
        assert "Permission denied" in refused("book", "show", mine / "closed" / "b.sqlite")
    assert result.exit_code == 0, result.stderr
    assert sorted(file.name for file in run.iterdir()) == before
    run.chmod(0o755)
