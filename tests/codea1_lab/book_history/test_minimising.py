from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import pytest

from codea1_env.book.store import StoredEntry
from codea1_env.facts.verdicts import Verdict
from codea1_env.problems import ProblemSet
from codea1_env.rounds.referee import Referee
from codea1_env.rules.mistake_book import BookEntry, BookKey, Provenance, combined
from codea1_env.rules.ruleset import Validation, preset
from codea1_env.runs.records import CaseRecord
from codea1_env.sandbox import Sandbox
from codea1_lab.book_history.minimising import Unchanged, minimise, without_duplicates
from codea1_lab.book_history.programs import Failures

WRONG = "def last(items):\n    return items[-1] if len(items) != 2 else None\n"  # fails lists of two


def stored(expression: str, expected: bytes, *, problem: str = "toy/last", direct: bool = True) -> StoredEntry:
    origin = Provenance(program_sha256=sha256(WRONG.encode()).hexdigest())
    return StoredEntry(problem, BookEntry(BookKey(expression, (), expected), direct, 1, 1, 1, 1, 0, 1, origin))


@pytest.fixture(scope="module")
def referee(toys: ProblemSet, sandbox: Sandbox) -> Referee:
    return Referee(toys, replace(preset("fixed"), validation=Validation.CALL_ONLY), sandbox=sandbox)


@pytest.fixture
def failures() -> Failures:
    found = Failures()
    found.add("toy/last", WRONG, ())
    return found


def test_a_case_shrinks_as_long_as_the_program_fails_it_in_the_same_way(referee: Referee, failures: Failures) -> None:
    (found,) = minimise([stored("last([17, 23])", b"23")], referee, failures)
    key = found.after.entry.key
    assert found.is_smaller  # but not to [], on which the program fails otherwise: it raises
    assert key.expression in ("last([0, 0])", "last([0, 1])", "last([1, 0])", "last([1, 1])")
    assert key.expected == key.expression[-3:-2].encode()  # the solution's value for the smaller input
    assert found.after.entry.provenance == found.before.entry.provenance


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (stored("last([1, 2])", b"2", problem="elsewhere"), Unchanged.UNKNOWN_PROBLEM),
        (stored("last([1, 2]) + 1", b"3", direct=False), Unchanged.NOT_DIRECT),
        (stored("last([1])", b"1"), Unchanged.NOT_REPEATED),
        (stored("last([0, 0])", b"0"), Unchanged.SMALLEST),
    ],
)
def test_what_cannot_shrink_stays_and_says_why(
    referee: Referee, failures: Failures, entry: StoredEntry, why: str
) -> None:
    (found,) = minimise([entry], referee, failures)
    assert (found.after, found.why) == (entry, why)


def test_a_case_whose_program_is_not_recorded_stays(referee: Referee) -> None:
    (found,) = minimise([stored("last([17, 23])", b"23")], referee, Failures())
    assert found.why == Unchanged.NO_PROGRAM


def test_all_programs_that_failed_a_case_are_found_the_first_at_the_head() -> None:
    entry = stored("last([1, 2])", b"2").entry
    case = CaseRecord(
        expression="last([1, 2])", prediction=None, imports=(), direct=True, line=1, expected="2",
        prediction_right=None, verdict=Verdict.WRONG_ANSWER, actual="1",
    )  # fmt: skip
    found = Failures()
    found.add("toy/last", "another", (case,))
    found.add("toy/last", "right", (case.model_copy(update={"verdict": Verdict.PASSED}),))
    found.add("toy/last", WRONG, ())
    assert found.of("toy/last", entry.key, entry.provenance.program_sha256, most=4) == (WRONG, "another")
    assert found.of("toy/other", entry.key, "", most=4) == ()


def test_equal_cases_in_other_spellings_become_one() -> None:
    entries = [stored("last([1,2])", b"2"), stored("last( [1, 2] )", b"2"), stored("last([1, 2])", b"3")]
    found = without_duplicates(entries, combined)
    assert [(one.entry.key.expression, one.entry.frequency) for one in found] == [
        ("last([1, 2])", 2),
        ("last([1, 2])", 1),  # another value: another case
    ]
