"""What Mistake Books are filled with: cases of `f`, reports about them, entries; and whether a file is sound."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from codea1_env import values
from codea1_env.book.store import MistakeBook, ProblemRows, StoredEntry
from codea1_env.facts.submissions import Candidate, TestCase
from codea1_env.facts.verdicts import CandidateReport, CaseReport, ProblemReport, ValidCase, Verdict
from codea1_env.problems.problem import GoldenCase, Problem
from codea1_env.rules.mistake_book import BookEntry, BookKey
from tests.support.reports import FAILED, INVALID, PASSED, suite_of


def case(number: int) -> ValidCase:
    """The case `f(number)`, whose value is the number; odd ones are direct."""
    return ValidCase(TestCase(f"f({number})", None, (), direct=bool(number % 2)), b"%d" % number, None)


def candidate(replayed: dict[ValidCase, Verdict], new: dict[int, Verdict], *, valid: bool = True) -> CandidateReport:
    """A report of a candidate under replayed cases and under one suite of new ones."""
    cases = tuple(CaseReport(case(number), verdict, f"gave {verdict}") for number, verdict in new.items())
    again = tuple(CaseReport(one, verdict) for one, verdict in replayed.items())
    verdict = PASSED if valid else INVALID
    return CandidateReport(Candidate(f"program {len(new)}"), verdict, "", again, (suite_of(*cases),))


def failing(problem_id: str, *numbers: int) -> ProblemReport:
    """A report of one candidate that fails these cases."""
    return ProblemReport(problem_id, (candidate({}, dict.fromkeys(numbers, FAILED)),))


def entry(expression: str, value: Any, frequency: int = 1, *imports: str) -> BookEntry:
    """The entry of a direct case that fails whenever it is run."""
    key = BookKey(expression, imports, values.encode(value))
    return BookEntry(key, True, frequency, frequency, frequency, 0, 0, 1)


def entry_of(case: ValidCase) -> BookEntry:
    return BookEntry(BookKey.of(case), case.case.direct, 1, 1, 1, 0, 0, 1)


def filled(*entries: BookEntry, problem_id: str = "p") -> MistakeBook:
    """A book in memory with these entries of one problem."""
    book = MistakeBook()
    fill(book, (StoredEntry(problem_id, one) for one in entries))
    return book


def fill(book: MistakeBook, entries: Iterable[StoredEntry]) -> None:
    """Append entries, all in one transaction; a round would count them, and has fewer."""
    with book._database.writing() as connection:
        for one in entries:
            rows = ProblemRows.find_or_add(connection, one.problem_id)
            rows.insert(replace(one.entry, sequence=rows.next_sequence()), one.entry.key.digest())
            rows.save_counts()


def stored(book: MistakeBook, problem_id: str) -> tuple[BookEntry, ...]:
    """The entries of a problem, oldest first."""
    return tuple(one.entry for one in book.entries(problem_id))


def identity(problem_id: str, entry_point: str, imports: str = "") -> Problem:
    golden = (GoldenCase(f"{entry_point}(1)", "1"),)
    return Problem(problem_id, "statement", entry_point, f"def {entry_point}(x): return x", golden, imports)


def assert_sound(book: MistakeBook) -> None:
    """SQLite finds no damage and every counter agrees with the rows."""
    size = book.size()
    with book._database.reading() as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        rows = "SELECT p.size, COUNT(e.problem) FROM problem p LEFT JOIN entry e ON e.problem = p.id GROUP BY p.id"
        assert all(size == n for size, n in connection.execute(rows))
        assert connection.execute("SELECT COUNT(*) FROM entry").fetchone() == (size,)
