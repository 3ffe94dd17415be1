"""The store: equal to the pure rules in every variant, and never slower with size."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from codea1_env.book.store import MistakeBook, StoredEntry
from codea1_env.errors import UserError
from codea1_env.facts.verdicts import ProblemReport, Verdict
from codea1_env.rules.mistake_book import BookDelta, BookEntry, Provenance, apply_changes, changes, select_replayed
from codea1_env.rules.ruleset import PRESETS, BookRules, BookUpdate
from tests.support.books import FAILED, PASSED, assert_sound, candidate, case, entry, failing, fill, stored

RELEASE = BookRules()


verdicts = st.sampled_from([PASSED, FAILED, FAILED, Verdict.TIME_LIMIT, Verdict.NOT_RUN, Verdict.INTERNAL_ERROR])
problem_ids = st.sampled_from(["a", "b/π", "c\0"])
variants = [
    BookRules(update, n_replayed=3, n_stalest=n_stalest, count_replay_failures=counting, max_entries=max_entries)
    for update in BookUpdate
    for n_stalest, counting, max_entries in ((0, False, None), (1, True, 5), (5, False, 2))
]


class StoreAndRules(RuleBasedStateMachine):
    """Random rounds on a book on disk and on tuples in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.book = self._opened()
        self.model: dict[str, tuple[BookEntry, ...]] = {}
        self.rounds: dict[str, int] = {}
        self.rules = RELEASE
        self.n_played = 0

    def _opened(self) -> MistakeBook:
        return MistakeBook(Path(self.folder.name, "book.sqlite"), survives_power_loss=False)

    @initialize(rules=st.sampled_from(variants))
    def choose_rules(self, rules: BookRules) -> None:
        self.rules = rules

    @rule(other=st.sampled_from(variants))
    def change_all_but_the_update(self, other: BookRules) -> None:
        self.rules = replace(other, update=self.rules.update)

    @rule(data=st.data(), problem_id=problem_ids)
    def play_a_round(self, data: st.DataObject, problem_id: str) -> None:
        self.n_played += 1
        before = self.model.get(problem_id, ())
        chosen = self.book.retrieve(problem_id, self.rules)
        assert chosen == select_replayed(before, self.rules)
        new = st.dictionaries(st.integers(0, 9), verdicts, max_size=8)
        replayed = [entry.to_valid_case() for entry in chosen]
        candidates = tuple(
            candidate({one: data.draw(verdicts) for one in replayed}, data.draw(new), valid=data.draw(st.booleans()))
            for _ in range(data.draw(st.integers(0, 3)))
        )
        report, provenance = ProblemReport(problem_id, candidates), Provenance(run="r", episode_id=str(self.n_played))
        delta = self.book.record(report, self.rules, provenance)
        if self.rules.update is not BookUpdate.OFF:
            self._expect(report, delta, provenance)

    def _expect(self, report: ProblemReport, delta: BookDelta, provenance: Provenance) -> None:
        problem_id = report.problem_id
        before = self.model.get(problem_id, ())
        number = self.rounds[problem_id] = self.rounds.get(problem_id, 0) + 1
        after = apply_changes(before, changes(report, self.rules), self.rules, round=number, provenance=provenance)
        self.model[problem_id] = after
        assert delta.size == len(self.model[problem_id])
        assert delta.size == len(before) + delta.added - delta.removed - delta.evicted

    @rule()
    def close_and_open(self) -> None:
        self.book.close()
        self.book = self._opened()

    @rule()
    def snapshot_spoil_and_restore(self) -> None:
        data = self.book.snapshot()
        self.book.record(failing("a", 1, 2, 3), RELEASE)
        self.book.restore(data)

    @invariant()
    def all_is_equal(self) -> None:
        for problem_id in ("a", "b/π", "c\0"):
            assert stored(self.book, problem_id) == self.model.get(problem_id, ())
            assert self.book.size(problem_id) == len(self.model.get(problem_id, ()))
            assert self.book.round_of(problem_id) == self.rounds.get(problem_id, 0)
        assert self.book.size() == sum(map(len, self.model.values()))
        assert set(self.book.problem_ids()) == set(self.rounds)

    def teardown(self) -> None:
        assert_sound(self.book)
        self.book.close()
        self.folder.cleanup()


TestStoreAndRules = StoreAndRules.TestCase
TestStoreAndRules.settings = settings(max_examples=20, stateful_step_count=15, deadline=None)


def test_a_delta_counts_what_happened():
    first = failing("p", 1, 2, 3)
    with MistakeBook() as book:
        assert book.record(first, RELEASE) == BookDelta(added=3, size=3)
        replayed = {case(1): PASSED, case(2): PASSED, case(3): FAILED}
        second = ProblemReport("p", (candidate(replayed, {2: FAILED, 3: FAILED, 4: FAILED}),))
        capped = replace(RELEASE, max_entries=2)
        assert book.record(second, capped) == BookDelta(added=2, removed=2, evicted=1, incremented=1, size=2)
        third = ProblemReport("p", (candidate({case(3): PASSED}, {}),))
        assert book.record(third, RELEASE) == BookDelta(decremented=1, size=2)
        assert book.record(third, BookRules(update=BookUpdate.OFF)) == BookDelta(size=2)
        assert book.round_of("p") == 3


@pytest.mark.parametrize("update", [BookUpdate.RELEASE, BookUpdate.REMOVE_ON_PASS])
@pytest.mark.parametrize("n_left", range(5))
def test_a_full_book_keeps_the_entries_that_the_rules_keep(update, n_left):
    rules = BookRules(update=update, max_entries=n_left)
    counts = [(9, 1, 4), (1, 1, 1), (5, 5, 9), (1, 3, 3)]
    with MistakeBook() as book:
        for number, (frequency, n_failed, n_evaluated) in enumerate(counts):
            one = replace(filler(number), frequency=frequency, n_evaluated=n_evaluated, n_failed=n_failed)
            fill(book, [StoredEntry("p", one)])
        before = stored(book, "p")
        assert book.record(failing("p"), rules) == BookDelta(evicted=4 - n_left, size=n_left)
        assert stored(book, "p") == apply_changes(before, (), rules, round=1)
        assert_sound(book)


def test_retrieving_changes_nothing():
    with MistakeBook() as book:
        book.record(failing("p", *range(20)), RELEASE)
        before = book.snapshot()
        for name in PRESETS:
            book.retrieve("p", PRESETS[name].book)
        assert book.snapshot() == before


def test_text_that_no_file_can_hold_is_told_apart_from_text_for_people():
    with MistakeBook() as book:
        with pytest.raises(UserError, match="not Unicode"):
            book.record(failing("p\ud800", 1), RELEASE)
        book.record(failing("p", 1), RELEASE, Provenance(run="\ud800", coder="a\0b"))
        (one,) = stored(book, "p")
        assert (one.provenance.run, one.provenance.coder) == ("\\ud800", "a\0b")


def test_many_entries_come_in_pages_and_in_order():
    with MistakeBook() as book:
        book.record(failing("p", *range(2500)), RELEASE)
        assert [int(entry.key.expected) for entry in stored(book, "p")] == list(range(2500))


def steps_per_round(book: MistakeBook, problem_id: str, rules: BookRules) -> int:
    """How many instructions SQLite's virtual machine executes for one round, in tens."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    with book._database.reading() as connection:
        connection.set_progress_handler(count, 10)
    replayed = {entry.to_valid_case(): PASSED for entry in book.retrieve(problem_id, rules)}
    book.record(ProblemReport(problem_id, (candidate(replayed, dict.fromkeys(range(-8, 4), FAILED)),)), rules)
    book.size(), book.size(problem_id), book.round_of(problem_id)
    connection.set_progress_handler(None, 10)
    return steps


@pytest.mark.slow
@pytest.mark.parametrize("update", [BookUpdate.RELEASE, BookUpdate.REMOVE_ON_PASS])
def test_the_work_of_a_round_does_not_grow_with_the_book(update):
    steps = []
    for n_others, size in ((0, 50), (500, 5000)):
        rules = BookRules(update=update, n_stalest=2, count_replay_failures=True, max_entries=size)
        with MistakeBook() as book:
            fill(book, (StoredEntry(f"other {n}", filler(n)) for n in range(n_others)))
            fill(book, (StoredEntry("p", filler(n)) for n in range(size)))
            steps.append(steps_per_round(book, "p", rules))
    assert steps[1] < 1.1 * steps[0]


def filler(number: int) -> BookEntry:
    return entry(f"f({number})", number, 1 + number % 5)


def test_stored_imports_are_plain_json():
    imports = ("import math", "from x import y as z")
    made = entry("f(math.pi)", 1, 1, *imports)
    with MistakeBook() as book:
        fill(book, [StoredEntry("p", made)])
        assert stored(book, "p")[0].key == made.key
        with book._database.reading() as connection:
            (found,) = connection.execute("SELECT imports FROM entry").fetchone()
    assert json.loads(found) == list(imports)
