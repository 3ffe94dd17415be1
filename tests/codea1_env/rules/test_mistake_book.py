"""The book's rules: against a literal model of the release, and claim by claim for what differs from it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env.facts.submissions import Candidate, TestCase
from codea1_env.facts.verdicts import CandidateReport, CaseReport, ProblemReport, ValidCase, Verdict
from codea1_env.rules.mistake_book import BookEntry, BookKey, Provenance, apply_changes, changes, select_replayed
from codea1_env.rules.ruleset import BookRules, BookUpdate, preset
from tests.support.reports import FAILED, INVALID, OURS, PASSED, SLOW, UNRUN, suite_of

RELEASE = BookRules()
COUNTING = BookRules(count_replay_failures=True)
REMOVING = BookRules(update=BookUpdate.REMOVE_ON_PASS)
UPDATES = [RELEASE, COUNTING, REMOVING]

Verdicts = dict[int, Verdict]
"""By number of the case."""


def case(number: int) -> ValidCase:
    return ValidCase(TestCase(f"f({number})", "0", ("import math",), direct=True), b"%d" % number, False)


def candidate(
    replayed: Verdicts | None = None, *suites: Verdicts, verdict: Verdict = PASSED, program: str = "p"
) -> CandidateReport:
    def judged(cases: Verdicts) -> tuple[CaseReport, ...]:
        return tuple(CaseReport(case(number), found, f"was {found}") for number, found in cases.items())

    reports = tuple(suite_of(*judged(cases)) for cases in suites)
    return CandidateReport(Candidate(program), verdict, "", judged(replayed or {}), reports)


def entry(number: int, frequency: int = 1, **fields: int) -> BookEntry:
    counts = {"n_failed": frequency, "n_evaluated": frequency, "added_round": 1, "last_replayed_round": 0}
    return BookEntry(
        BookKey.of(case(number)), direct=True, frequency=frequency, **{**counts, "sequence": number, **fields}
    )


def play(book: tuple[BookEntry, ...], rules: BookRules, *candidates: CandidateReport) -> tuple[BookEntry, ...]:
    return apply_changes(book, changes(ProblemReport("p", candidates), rules), rules, round=7)


def frequencies(book: tuple[BookEntry, ...]) -> dict[int, int]:
    """Frequency by case, oldest first."""
    assert [one.expression for one in book] == [f"f({int(one.key.expected)})" for one in book]
    return {int(one.key.expected): one.frequency for one in book}


FAILED_TWICE = [candidate({1: FAILED}), candidate({1: SLOW})]
PASSED_AND_FAILED = [*[candidate({1: PASSED})] * 4, candidate({1: FAILED})]
HIDDEN = candidate({1: PASSED, 2: FAILED}, {3: FAILED, 4: OURS})
PLAYED = [
    # frequencies by case, rules, candidates, frequencies afterwards
    # Every valid candidate that passes a replayed case takes one off, and an entry leaves at zero however many do.
    ({1: 5, 2: 5}, RELEASE, [candidate({1: PASSED, 2: FAILED}), candidate({1: PASSED, 2: PASSED})], {1: 3, 2: 4}),
    ({1: 2}, RELEASE, [candidate({1: PASSED})] * 3, {}),
    # New failures count over suites and candidates.
    ({}, RELEASE, [candidate(None, {1: FAILED}, {1: FAILED, 2: PASSED}), candidate(None, {1: FAILED})], {1: 3}),
    # A failed replay adds nothing in the release, and one each where it is counted, after passes have come off.
    ({1: 2}, RELEASE, FAILED_TWICE, {1: 2}),
    ({1: 2}, COUNTING, FAILED_TWICE, {1: 4}),
    ({1: 2}, RELEASE, PASSED_AND_FAILED, {}),
    ({1: 2}, COUNTING, PASSED_AND_FAILED, {1: 1}),
    # A candidate with an internal error anywhere is not evidence.
    *(({1: 1, 2: 1}, rules, [HIDDEN], {1: 1, 2: 1}) for rules in UPDATES),
    # A pass removes whatever the frequency; a case that fails again comes back.
    (
        {1: 9, 2: 9},
        replace(REMOVING, count_replay_failures=True),
        [candidate({1: PASSED, 2: FAILED}), candidate({1: FAILED, 2: FAILED})],
        {2: 11},
    ),
    ({1: 9}, REMOVING, [candidate({1: PASSED}, {1: FAILED})], {1: 1}),
    # A case that nobody failed never enters.
    *(({}, rules, [candidate(None, {1: PASSED})], {}) for rules in UPDATES),
    # A full book lets the least frequent and then the oldest go.
    ({1: 3, 2: 1, 3: 1, 4: 2}, replace(RELEASE, max_entries=3), [], {1: 3, 3: 1, 4: 2}),
    ({1: 3, 2: 1, 3: 1, 4: 2}, replace(RELEASE, max_entries=2), [], {1: 3, 4: 2}),
    ({1: 3, 2: 1, 3: 1, 4: 2}, replace(RELEASE, max_entries=0), [], {}),
]


@pytest.mark.parametrize(("before", "rules", "candidates", "after"), PLAYED)
def test_a_round_changes_frequencies(before, rules, candidates, after):
    book = tuple(entry(number, frequency) for number, frequency in before.items())
    assert frequencies(play(book, rules, *candidates)) == after


def test_an_entry_may_leave_and_come_back_younger_in_one_round():
    book = (entry(1), entry(2))
    after = play(book, RELEASE, candidate({1: PASSED}, {}), candidate({1: PASSED}, {1: FAILED}))
    assert frequencies(after) == {2: 1, 1: 1}
    assert after[-1].added_round == 7


def test_a_replayed_case_that_is_gone_is_ignored():
    assert play((entry(2),), RELEASE, candidate({1: PASSED})) == (entry(2),)
    assert play((entry(2),), COUNTING, candidate({1: FAILED})) == (entry(2),)


@pytest.mark.parametrize("verdict", [INVALID, Verdict.NO_ENTRY_POINT, OURS])
@pytest.mark.parametrize("rules", UPDATES)
def test_invalid_candidates_are_no_evidence(rules, verdict):
    broken = candidate({1: PASSED, 2: FAILED}, {3: FAILED}, verdict=verdict)
    after = play((entry(1), entry(2)), rules, broken)
    assert [replace(one, last_replayed_round=0) for one in after] == [entry(1), entry(2)]


@pytest.mark.parametrize("rules", UPDATES)
def test_what_was_not_run_is_no_evidence(rules):
    unsure = candidate({1: UNRUN}, {2: UNRUN, 3: Verdict.RUNTIME_ERROR})
    after = play((entry(1),), rules, unsure)
    assert frequencies(after) == {1: 1, 3: 1}
    assert after[0].n_evaluated == 1


def test_tried_entries_count_as_replayed_even_without_evidence():
    after = play((entry(1), entry(2)), RELEASE, candidate({1: UNRUN}, verdict=INVALID))
    assert [one.last_replayed_round for one in after] == [7, 0]


def test_off_changes_nothing():
    assert changes(ProblemReport("p", (candidate({1: PASSED}, {2: FAILED}),)), BookRules(update=BookUpdate.OFF)) == ()


verdicts = st.sampled_from([PASSED, PASSED, FAILED, Verdict.RUNTIME_ERROR, UNRUN])
suites = st.dictionaries(st.integers(1, 6), verdicts, max_size=4)


@st.composite
def rounds(draw: st.DrawFn, replayable: tuple[int, ...]) -> list[CandidateReport]:
    validity = st.sampled_from([PASSED, PASSED, PASSED, INVALID])
    return [
        candidate({n: draw(verdicts) for n in replayable}, *draw(st.lists(suites, max_size=3)), verdict=draw(validity))
        for _ in range(draw(st.integers(0, 3)))
    ]


def released(book: dict[int, int], candidates: list[CandidateReport]) -> dict[int, int]:
    """The release's update, delta by delta (T:119-156); dicts keep the order of its list."""
    book = dict(book)
    valid = [one for one in candidates if one.loads]
    for one in valid:
        for found in one.replayed:
            number = int(found.case.expected)
            if found.verdict is PASSED and number in book:
                book[number] -= 1
                if book[number] <= 0:
                    del book[number]
    for one in valid:
        for found in (found for suite in one.suites for found in suite.cases):
            if found.verdict.is_failure:
                number = int(found.case.expected)
                book[number] = book.get(number, 0) + 1
    return book


@given(st.data())
def test_release_rounds_agree_with_a_literal_model(data):
    book: tuple[BookEntry, ...] = ()
    for _ in range(4):
        chosen = select_replayed(book, BookRules(n_replayed=3))
        ranked = sorted(frequencies(book).items(), key=lambda item: -item[1])  # stable, as the release sorts
        assert [int(one.key.expected) for one in chosen] == [number for number, _ in ranked[:3]]
        played = data.draw(rounds(tuple(int(one.key.expected) for one in chosen)))
        expected = released(frequencies(book), played)
        book = play(book, RELEASE, *played)
        assert list(frequencies(book).items()) == list(expected.items())


def test_provenance_names_the_first_program_that_failed_and_what_it_did():
    programs = zip("abc", (PASSED, SLOW, FAILED), strict=True)
    played = tuple(candidate(None, {1: verdict}, program=program) for program, verdict in programs)
    who = Provenance(run="r", episode_id="e", round=3, coder="c", tester="t")
    wanted = changes(ProblemReport("p", played), RELEASE)
    (arrived,) = apply_changes((), wanted, RELEASE, round=1, provenance=who)
    sha256_of_b = "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d"
    assert arrived.provenance == replace(who, program_sha256=sha256_of_b, verdict="time_limit", actual="was time_limit")


def test_provenance_stays_with_an_entry_that_stays():
    book = play((), COUNTING, candidate(None, {1: FAILED}, program="a"))
    again = play(book, COUNTING, candidate({1: PASSED}), candidate({1: FAILED}, {1: FAILED}, program="b"))
    assert (again[0].provenance, again[0].frequency) == (book[0].provenance, 2)


def test_an_entry_replays_without_the_testers_prediction():
    (arrived,) = play((), RELEASE, candidate(None, {1: FAILED}))
    assert arrived.to_valid_case() == ValidCase(TestCase("f(1)", None, ("import math",), True), b"1", None)
    assert BookKey.of(arrived.to_valid_case()) == arrived.key


def test_keys_that_differ_have_digests_that_differ():
    parts = (
        *(("f(1)", (), b"1"), ("f(1)", ("f(1)",), b"1"), ("f(1)", (), b"11"), ("f(1)1", (), b"1")),
        *(("f", ("(1)",), b"1"), ("f(1)", ("a", "b"), b"1"), ("f(1)", ("a, b",), b"1")),
    )
    keys = [BookKey(*each) for each in parts]
    assert len({one.digest() for one in keys}) == len(keys)
    assert BookKey("f(1)", (), b"1").digest().hex() == "e7e2a51eb1175a6c8eab06c1b6ebc69c"  # stored in every book


@pytest.mark.parametrize(
    "fields", [{"frequency": 0}, {"n_failed": 0}, {"n_failed": 2}, {"sequence": 0}, {"last_replayed_round": -1}]
)
def test_an_impossible_entry_cannot_be_made(fields):
    with pytest.raises(ValueError, match="an entry with"):
        replace(entry(1), **fields)


def replay_order(book: tuple[BookEntry, ...], rules: BookRules) -> list[int]:
    return [int(one.key.expected) for one in select_replayed(book, rules)]


def test_the_most_frequent_come_first_and_the_older_of_equals():
    book = (entry(3, 2), entry(1, 2), entry(2, 5), entry(4, 1))
    assert replay_order(book, BookRules(n_replayed=3)) == [2, 1, 3]


def test_stale_slots_go_to_those_tried_longest_ago_among_the_others():
    book = (
        entry(1, 9, last_replayed_round=9),
        entry(2, 8, last_replayed_round=6),
        entry(3, 1, last_replayed_round=4),
        entry(4, 1, added_round=3),
        entry(5, 1, added_round=3),
    )
    assert replay_order(book, BookRules(n_replayed=4, n_stalest=2)) == [1, 2, 4, 5]
    assert replay_order(book, BookRules(n_replayed=5, n_stalest=3)) == [1, 2, 4, 5, 3]
    assert replay_order(book, BookRules(n_replayed=2, n_stalest=9)) == [4, 5]
    assert replay_order(book, BookRules(n_replayed=0, n_stalest=1)) == []


def tries(rules: BookRules, n_rounds: int, n_entries: int, n_arrivals: int = 0) -> Counter[int]:
    """How often each of the first entries is replayed while others arrive, all of which still beat somebody."""
    book = tuple(entry(number, 100 - number) for number in range(1, n_entries + 1))
    found: Counter[int] = Counter()
    for round_number in range(1, n_rounds + 1):
        chosen = [int(one.key.expected) for one in select_replayed(book, rules)]
        found.update(number for number in chosen if number <= n_entries)
        new = {1000 * round_number + position: FAILED for position in range(n_arrivals)}
        wanted = changes(ProblemReport("p", (candidate(dict.fromkeys(chosen, FAILED), new),)), rules)
        book = apply_changes(book, wanted, rules, round=round_number)
    return found


def test_d14_every_entry_gets_its_turn_in_fixed_and_not_in_release():
    n = 40
    assert set(tries(preset("fixed").book, n, n)) == set(range(1, n + 1))
    assert set(tries(preset("release").book, n, n)) == set(range(1, 9))


def test_no_entry_starves_behind_a_stream_of_newcomers():
    rules = BookRules(n_replayed=4, n_stalest=2)
    assert min(tries(rules, 40, 8, n_arrivals=3)[number] for number in range(1, 9)) >= 2


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 4)), max_size=12), st.integers(0, 6), st.integers(0, 6))
def test_as_many_distinct_entries_as_there_are_slots(counts, n_replayed, n_stalest):
    book = tuple(entry(i, f, last_replayed_round=r) for i, (f, r) in enumerate(counts, start=1))
    rules = BookRules(n_replayed=n_replayed, n_stalest=n_stalest)
    chosen = replay_order(book, rules)
    assert len(set(chosen)) == len(chosen) == min(len(book), max(0, n_replayed))
