"""What has left a book stays on record, across versions and snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from codea1_env.book.store import Leaving, MistakeBook
from codea1_env.facts.verdicts import ProblemReport
from codea1_env.rules.mistake_book import BookKey, Provenance
from codea1_env.rules.ruleset import BookRules, BookUpdate
from codea1_lab.book_history.periods import periods_of, relapses
from tests.support.books import FAILED, PASSED, candidate, case

RULES = BookRules(update=BookUpdate.REMOVE_ON_PASS)


def play(book: MistakeBook, fails: Sequence[int] = (), passes: Sequence[int] = (), rules: BookRules = RULES) -> None:
    """One round of problem p: a program that fails new cases, and passes replayed ones."""
    report = candidate({case(n): PASSED for n in passes}, dict.fromkeys(fails, FAILED))
    book.record(ProblemReport("p", (report,)), rules, Provenance("run", "episode", 0, "a coder", "a tester"))


def test_a_fixed_case_that_fails_again_is_a_relapse_and_the_record_tells_when() -> None:
    with MistakeBook() as book:
        play(book, fails=(1, 2))  # round 1
        play(book)
        play(book, passes=(1,))  # round 3
        play(book)
        play(book, fails=(1,))  # round 5
        (departure,) = book.departures()
        periods = periods_of(book)
    assert (departure.expression, departure.how) == ("f(1)", Leaving.FIXED)
    assert (departure.added_round, departure.last_round) == (1, 3)
    assert departure.digest == BookKey.of(case(1)).digest()
    assert (departure.provenance.tester, departure.provenance.verdict) == ("a tester", "wrong_answer")
    found = [(each.expression, each.added_round, each.last_round, each.how) for each in periods]
    assert found == [("f(1)", 1, 3, Leaving.FIXED), ("f(2)", 1, 5, None), ("f(1)", 5, 5, None)]
    (relapse,) = relapses(periods)
    assert (relapse.expression, relapse.n_relapses, relapse.gaps) == ("f(1)", 1, (2,))


def test_a_case_that_a_full_book_pushes_out_is_no_fix_and_its_return_no_relapse() -> None:
    rules = BookRules(update=BookUpdate.REMOVE_ON_PASS, max_entries=1)
    with MistakeBook() as book:
        play(book, fails=(1,), rules=rules)
        play(book, fails=(2,), rules=rules)
        play(book, fails=(1,), rules=rules)
        periods = periods_of(book)
        assert [d.how for d in book.departures()] == [Leaving.EVICTED, Leaving.EVICTED]
    assert not any(period.is_fixed for period in periods)
    assert relapses(periods) == ()


def test_what_a_departure_leaves_is_bounded() -> None:
    rules = BookRules(update=BookUpdate.REMOVE_ON_PASS, max_entries=1)
    with MistakeBook() as book:
        play(book, fails=(1,), rules=rules)
        empty = len(book.snapshot())
        for n in range(100):
            play(book, fails=(10**4000 + n,), rules=rules)
        assert {len(left.expression) for left in book.departures()} == {4, 1000}
        assert len(book.snapshot()) < empty + 100 * 1500 + 4 * 4096


def test_many_departures_come_in_pages_and_survive_snapshots(tmp_path: Path) -> None:
    with MistakeBook() as book, MistakeBook(tmp_path / "other.sqlite") as other:
        play(book, fails=tuple(range(1500)))
        play(book, passes=tuple(range(1500)))
        assert [departure.expression for departure in book.departures()] == [f"f({n})" for n in range(1500)]
        other.restore(book.snapshot())
        assert list(other.departures()) == list(book.departures())
