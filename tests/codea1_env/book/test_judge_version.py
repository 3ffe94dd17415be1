"""A book goes on under a later judge, which confirms its entries as they are replayed, never under an earlier one."""

from __future__ import annotations

from pathlib import Path

import pytest

from codea1_env import Problem, code_a1_v0
from codea1_env.book.store import Leaving, MistakeBook
from codea1_env.errors import UserError
from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_env.rules.ruleset import BookRules
from tests.support.books import failing

OLD = JUDGE_VERSION - 1
RULES = BookRules()


def play(book: MistakeBook, number: int = 0, judge_version: int = JUDGE_VERSION) -> None:
    book.record(failing("p", number), RULES, judge_version=judge_version)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A book with one case of the judge before this one."""
    path = tmp_path / "old.sqlite"
    with MistakeBook(path) as book:
        play(book, judge_version=OLD)
    return path


def test_a_new_book_is_of_this_judge_and_takes_over_that_of_its_first_round() -> None:
    with MistakeBook() as book, MistakeBook() as other:
        assert book.judge_version == other.judge_version == JUDGE_VERSION
        play(other, judge_version=OLD)
        assert other.judge_version == OLD


def test_rounds_of_a_later_judge_enter_and_no_earlier_one_follows(old: Path) -> None:
    with MistakeBook(old) as book:
        play(book, 2)
        assert (book.judge_version, book.size(), book.round_of("p")) == (JUDGE_VERSION, 2, 2)
        said = f"version {JUDGE_VERSION} of the judge.*cannot take new ones of version {OLD}"
        with pytest.raises(UserError, match=said):
            play(book, 3, judge_version=OLD)
        assert (book.size(), book.round_of("p")) == (2, 2)


def test_the_environment_refuses_a_later_book_before_anything_is_played(old: Path) -> None:
    code_a1_v0.env(problems="starter", book=old).close()
    later = old.with_name("later.sqlite")
    with MistakeBook(later) as book:
        play(book, judge_version=JUDGE_VERSION + 1)
    with pytest.raises(UserError, match="whose verdicts may differ; begin a new book"):
        code_a1_v0.env(problems="starter", book=later)


def test_what_an_earlier_judge_believed_leaves_with_a_reason(old: Path) -> None:
    problem = Problem("p", "def f(x): ...", "f", "def f(x): return x + 1", ())  # the book says that f(0) is 0
    env = code_a1_v0.env(problems=[problem], book=old)
    env.reset(seed=0)
    env.step(problem.solution)
    env.step("assert f(9) == 10")
    assert env.unwrapped.book.size() == 0
    assert [left.how for left in env.unwrapped.book.departures()] == [Leaving.DENIED]
    env.close()


def test_a_snapshot_keeps_its_judge(old: Path) -> None:
    with MistakeBook() as book, MistakeBook(old, read_only=True) as other:
        assert other.judge_version == OLD
        book.restore(other.snapshot())
        assert book.judge_version == OLD
        book.restore(old.read_bytes())
        assert book.judge_version == OLD
