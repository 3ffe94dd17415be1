from __future__ import annotations

from math import isnan, nan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_agents import statistics
from codea1_agents.statistics import difference_interval, mean_interval, product_interval

values = st.lists(st.floats(-1, 1), min_size=1, max_size=4)
tables = st.dictionaries(st.text(min_size=1, max_size=3), values, min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("games", "mean", "counts"),
    [
        ({"a": [1.0, 1.0, 1.0], "b": [0.0]}, 0.5, (4, 2, 0)),  # problems weigh the same
        ({"a": [1.0, nan], "b": [nan], "c": [1.0]}, 1.0, (2, 2, 2)),  # what is masked is no zero
        ({"a": [0.25, 0.75]}, 0.5, (2, 1, 0)),
        ({"a": [nan]}, nan, (0, 0, 1)),
        ({}, nan, (0, 0, 0)),
    ],
)
def test_a_mean_is_over_problems_and_has_an_interval_from_two_on(
    games: dict[str, list[float]], mean: float, counts: tuple[int, int, int]
) -> None:
    found = mean_interval(games)
    assert found.mean == pytest.approx(mean, nan_ok=True)
    assert (found.n, found.n_problems, found.n_masked) == counts
    assert isnan(found.low) == isnan(found.high) == (counts[1] < 2)


@given(tables)
def test_the_interval_holds_the_mean_and_stays_within_the_values(table: dict[str, list[float]]) -> None:
    estimate = mean_interval(table, n_resamples=200)
    means = [float(np.mean(v)) for v in table.values()]
    assert min(means) - 1e-12 <= estimate.mean <= max(means) + 1e-12
    if len(table) > 1:
        assert min(means) - 1e-12 <= estimate.low <= estimate.high <= max(means) + 1e-12


@given(tables)
def test_the_order_of_play_does_not_move_the_interval(table: dict[str, list[float]]) -> None:
    turned = dict(reversed(table.items()))
    assert repr(mean_interval(table, n_resamples=50)) == repr(mean_interval(turned, n_resamples=50))


def test_chunked_resampling_equals_one_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {str(i): [i / 7] for i in range(7)}
    whole = mean_interval(table, n_resamples=100)
    monkeypatch.setattr(statistics, "_MAX_CELLS", 7 * 9)
    assert mean_interval(table, n_resamples=100) == whole


def test_the_interval_agrees_with_the_normal_one_and_that_of_games_would_be_too_narrow() -> None:
    draws = np.random.default_rng(3).normal(0.5, 0.2, size=400)
    estimate = mean_interval({str(i): [float(v)] for i, v in enumerate(draws)})
    half = 1.96 * draws.std() / sqrt(len(draws))
    assert estimate.low == pytest.approx(draws.mean() - half, abs=0.1 * half)
    assert estimate.high == pytest.approx(draws.mean() + half, abs=0.1 * half)
    # Why clusters: eight equal games of a problem are one observation, not eight.
    games = {str(i): [float(i % 2)] * 8 for i in range(20)}
    clustered = mean_interval(games)
    as_if_independent = mean_interval({f"{p}/{k}": [v] for p, vs in games.items() for k, v in enumerate(vs)})
    assert clustered.high - clustered.low > 2 * (as_if_independent.high - as_if_independent.low)


def test_the_interval_covers_the_truth_as_often_as_it_says_with_two_correlated_games_a_problem() -> None:
    generator = np.random.default_rng(11)
    covered = 0
    for trial in range(400):
        levels = generator.beta(2, 3, size=40)  # true mean 0.4
        games = {str(i): (generator.random(2) < level).astype(float).tolist() for i, level in enumerate(levels)}
        estimate = mean_interval(games, n_resamples=300, seed=trial)
        covered += estimate.low <= 0.4 <= estimate.high
    assert 0.9 <= covered / 400 <= 0.99


def test_a_paired_difference_is_narrower_than_its_two_sides() -> None:
    before = {str(i): [i / 30] for i in range(30)}
    after = {str(i): [i / 30 + 0.1] for i in range(30)}
    difference = difference_interval(before, after)
    side = mean_interval(before)
    assert difference.mean == pytest.approx(0.1)
    assert difference.high - difference.low < 1e-9 < side.high - side.low
    with pytest.raises(ValueError, match="same games"):
        difference_interval({"a": [1.0]}, {"a": [1.0, 2.0]})


def test_a_product_is_of_the_two_means_each_over_its_own_problems_in_any_order() -> None:
    found = product_interval({"a": 0.5, "b": 1.0, "c": 0.0}, {"a": nan, "b": 0.5, "c": nan})
    assert found.mean == pytest.approx(0.5 * 0.5)
    assert (found.n, found.n_problems) == (1, 3)
    assert found.low <= found.mean <= found.high
    unknown = product_interval({"a": 0.5, "b": 1.0}, {"a": nan, "b": nan})
    assert isnan(unknown.mean)
    assert isnan(unknown.low)
    first, second = {"a": 0.1, "b": 0.9, "c": 0.4}, {"a": 1.0, "b": 0.5, "c": 0.0}
    backwards = dict(reversed(first.items())), dict(reversed(second.items()))
    assert product_interval(first, second) == product_interval(*backwards)
