from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_lab.crossplay.ratings import bradley_terry, ratings_of
from tests.codea1_lab.crossplay.conftest import play_of


@given(st.lists(st.floats(-2, 2), min_size=3, max_size=3), st.lists(st.floats(-2, 2), min_size=2, max_size=2))
def test_games_that_follow_the_model_give_its_ratings_back(coders: list[float], testers: list[float]) -> None:
    gap = np.subtract.outer(coders, testers)
    found = bradley_terry(1 / (1 + np.exp(-gap)), np.full(gap.shape, 1e7))
    assert np.subtract.outer(found[:3], found[3:]) == pytest.approx(gap, abs=1e-4)


def test_who_never_loses_has_a_rating_and_a_pair_that_never_met_says_nothing() -> None:
    found = bradley_terry(np.array([[1.0, 1.0], [0.0, 0.5]]), np.full((2, 2), 20.0))
    assert np.isfinite(found).all()
    assert found[0] > found[2] > found[1]
    assert found[2] > found[3]
    counts = np.array([[10.0, 0.0], [10.0, 10.0]])
    one, other = (bradley_terry(np.array([[0.7, unmet], [0.5, 0.5]]), counts) for unmet in (0.1, 0.9))
    assert one == pytest.approx(other)


def test_zero_is_the_mean_of_the_yardsticks_and_intervals_hold_the_ratings() -> None:
    generator = np.random.default_rng(0)
    survives = (generator.random((3, 2, 40)) < np.array([0.9, 0.5, 0.2])[:, None, None]).astype(float).tolist()
    found = ratings_of(play_of(survives, fixed_coders=(1,), fixed_testers=(0,)), n_draws=200)
    assert found.coders[1].mean + found.testers[0].mean == pytest.approx(0.0)
    assert found.coders[0].mean > found.coders[1].mean > found.coders[2].mean
    assert all(each.low <= each.mean <= each.high for each in (*found.coders, *found.testers))
    assert found.coders[0].low > found.coders[2].high
    everybody = ratings_of(play_of(survives), n_draws=2)
    assert sum(each.mean for each in (*everybody.coders, *everybody.testers)) == pytest.approx(0.0)
    assert found.misfit < 0.2


def test_the_same_seed_gives_the_same_intervals_and_no_single_number_fits_a_circle() -> None:
    survives = [[[0.0, 1.0, 1.0, 0.0]], [[1.0, 1.0, 0.0, 1.0]]]
    first, second = (ratings_of(play_of(survives), n_draws=50, seed=3) for _ in range(2))
    assert first == second
    assert ratings_of(play_of(survives), n_draws=50, seed=4) != first
    circle = [[[1.0] * 30, [0.0] * 30], [[0.0] * 30, [1.0] * 30]]
    assert ratings_of(play_of(circle), n_draws=10).misfit == pytest.approx(0.5, abs=0.01)
