from __future__ import annotations

from itertools import combinations
from math import inf, isnan, nan
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_agents.evaluation.metrics import (
    accuracy_at_k,
    best_positions,
    conditional_mutation_score,
    fixed_mutation_score,
    n_problems_needed,
    pass_at_k,
    selected_score,
    spearman,
)

flags = st.lists(st.booleans(), min_size=1, max_size=8)
killers = st.lists(st.none() | st.integers(0, 4), max_size=8)
numbers = st.lists(st.integers(-3, 3).map(float), min_size=2, max_size=7)


@given(flags, st.integers(1, 8))
def test_pass_at_k_is_the_share_of_subsets_with_a_right_sample(samples: list[bool], k: int) -> None:
    found = pass_at_k(len(samples), sum(samples), k)
    subsets = list(combinations(samples, k))
    assert isnan(found) if not subsets else found == pytest.approx(mean(map(any, subsets)))


def test_pass_at_k_is_exact_and_missing_tests_are_wrong_ones_or_leave_the_conditional_score() -> None:
    assert pass_at_k(5000, 1, 2500) == pytest.approx(0.5, abs=1e-12)
    assert accuracy_at_k([True], 5) == 0.2
    assert accuracy_at_k([False, True, True], 2) == 0.5
    assert isnan(conditional_mutation_score([True, True], [0], 2, 3))


@pytest.mark.parametrize("counts", [(3, 4, 1), (3, -1, 1), (3, 1, 0)])
def test_impossible_counts_are_refused(counts: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="pass@"):
        pass_at_k(*counts)


@given(flags, killers, st.integers(1, 5))
def test_mutation_scores_count_what_first_tests_kill(right: list[bool], killed_by: list[int | None], k: int) -> None:
    by_hand = [position in range(k) for position in killed_by]
    fixed = fixed_mutation_score(killed_by, k)
    assert isnan(fixed) if not killed_by else fixed == pytest.approx(mean(by_hand))
    conditional = conditional_mutation_score(right, killed_by, k, len(right))
    if not all(right):
        assert isnan(conditional)
    else:
        assert conditional == (1.0 if not killed_by else fixed)


@given(numbers, st.data())
def test_spearman_is_pearson_of_mean_ranks(first: list[float], data: st.DataObject) -> None:
    second = data.draw(st.lists(st.integers(-3, 3).map(float), min_size=len(first), max_size=len(first)))

    def ranks(values: list[float]) -> list[float]:
        ordered = sorted(values)
        return [mean(place for place, other in enumerate(ordered) if other == value) for value in values]

    a, b = ranks(first), ranks(second)
    da, db = [x - mean(a) for x in a], [x - mean(b) for x in b]
    scale = (sum(x * x for x in da) * sum(x * x for x in db)) ** 0.5
    found = spearman(first, second)
    assert (
        isnan(found)
        if scale < 1e-12
        else found == pytest.approx(sum(x * y for x, y in zip(da, db, strict=True)) / scale)
    )


@given(numbers, st.data())
def test_the_selected_candidate_is_the_mean_over_fair_tie_breaks(scores: list[float], data: st.DataObject) -> None:
    worth = data.draw(st.lists(st.floats(0, 1), min_size=len(scores), max_size=len(scores)))
    best = [position for position in range(len(scores)) if all(scores[position] >= other for other in scores)]
    assert best_positions(scores) == tuple(best)
    assert selected_score(scores, worth) == pytest.approx(mean(worth[position] for position in best))


def test_problems_needed_are_those_of_the_textbook_four_times_as_many_for_half_the_difference() -> None:
    # d = s (an effect of one standard deviation): (1.960 + 0.842)**2 = 7.85 problems.
    assert n_problems_needed([0.0, 1.0, 2.0]) == 8
    assert n_problems_needed([1.0, 1.0]) == 2
    assert n_problems_needed([-1.0, 1.0]) == inf
    assert isnan(n_problems_needed([1.0, nan]))
    spread = [-1.0, 1.0] * 50
    whole, half = ([value + shift for value in spread] for shift in (0.2, 0.1))
    assert n_problems_needed(half) == pytest.approx(4 * n_problems_needed(whole), rel=0.01)
