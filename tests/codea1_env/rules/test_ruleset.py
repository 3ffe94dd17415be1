from __future__ import annotations

from dataclasses import replace
from math import inf, nan
from typing import Any

import numpy as np
import pytest

from codea1_env.errors import UserError
from codea1_env.rules.ruleset import (
    PRESETS,
    AtgenRules,
    BookRules,
    CommonKills,
    Comparison,
    CreditRules,
    LearnabilityRules,
    RewardRules,
    RewardScheme,
    Ruleset,
    UtrlRules,
    preset,
)


@pytest.mark.parametrize("number", [0, -1, 1.5, True, "8", None, 10**30])
def test_a_suite_of_no_sensible_size_is_refused_by_name(number: Any) -> None:
    with pytest.raises(UserError, match=r"tests_per_suite must be .* from 1 to 10000"):
        replace(preset("fixed"), tests_per_suite=number)


NUMBERS = {
    ("reward", RewardRules): [
        *(("alpha", nan), ("alpha", 7), ("alpha", -0.1), ("alpha", "0.5"), ("nonprintable_penalty", inf)),
        *(("invalid_candidate", nan), ("no_evidence", "mask"), ("no_evidence", np.array([0.1, 0.2]))),
    ],
    ("reward.credit", CreditRules): [
        *(("forgiven", -1), ("gate", 1.5), ("floor", 0), ("power", -1), ("most_kills", 0)),
    ],
    ("reward.utrl", UtrlRules): [("validity", nan)],
    ("reward.atgen", AtgenRules): [("failed", "-1")],
    ("reward.learnability", LearnabilityRules): [("wrong", inf)],
    ("comparison", Comparison): [("rel_tol", -1), ("abs_tol", nan)],
    ("book", BookRules): [("n_replayed", -1), ("n_stalest", -1), ("max_entries", 2.5)],
}


@pytest.mark.parametrize(
    ("place", "kind", "name", "value"), [(*of, *each) for of, numbers in NUMBERS.items() for each in numbers]
)
def test_a_number_out_of_range_is_refused_by_name(place: str, kind: type, name: str, value: Any) -> None:
    with pytest.raises(UserError, match=rf"rules: {place}\.{name} must be (a|above) "):
        kind(**{name: value})


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        *((Ruleset, "reading", "strictly"), (Ruleset, "validation", "filled"), (RewardRules, "replays", "unpaid")),
        *((CreditRules, "common_kills", "bok"), (BookRules, "update", None), (BookRules, "update", "quality")),
    ],
)
def test_a_choice_that_does_not_exist_is_refused_with_those_that_do(kind: type, name: str, value: Any) -> None:
    named = {"name": "own"} if kind is Ruleset else {}
    with pytest.raises(UserError, match=rf"rules: [\w.]*{name} must be one of \w+, .*got {value!r}"):
        kind(**named, **{name: value})


def test_credit_that_nothing_reads_is_refused() -> None:
    by_book = CreditRules(common_kills=CommonKills.BOOK)
    with pytest.raises(UserError, match=r"reward\.credit requires scheme='fixed' \(got 'paper'"):
        RewardRules(scheme=RewardScheme.PAPER, credit=by_book)
    fixed = preset("fixed")
    assert replace(fixed, reward=replace(fixed.reward, credit=by_book))
    with pytest.raises(UserError, match=r"book\.n_replayed must be above 0"):
        replace(fixed, reward=replace(fixed.reward, credit=by_book), book=BookRules(n_replayed=0))


def test_numbers_that_sweeps_produce_are_taken() -> None:
    for alpha in np.linspace(0, 1, 3):
        assert RewardRules(alpha=alpha).alpha == alpha
    assert Ruleset("mine", tests_per_suite=1).tests_per_suite == 1
    assert [replace(rules) for rules in PRESETS.values()] == list(PRESETS.values())


def test_a_replayed_case_that_beats_a_program_again_gains_frequency_in_the_paper_only() -> None:
    assert preset("paper").book.count_replay_failures  # A.3: "added (or frequency incremented)"
    assert not preset("release").book.count_replay_failures
