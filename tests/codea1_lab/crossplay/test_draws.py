from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_lab.crossplay.draws import central, drawn_counts, means_of, problem_weights


@given(st.integers(1, 12), st.integers(0, 20), st.integers(0, 5))
def test_every_draw_has_as_many_problems_and_the_first_is_no_draw(n_problems: int, n_draws: int, seed: int) -> None:
    weights = problem_weights(n_problems, n_draws, seed)
    assert weights.shape == (1 + n_draws, n_problems)
    assert (weights.sum(axis=1) == n_problems).all()
    assert (weights[0] == 1).all()
    assert (weights == problem_weights(n_problems, n_draws, seed)).all()


def test_means_leave_out_what_is_not_known() -> None:
    table = np.array([[[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan]]])
    weights = np.array([[1.0, 1.0, 1.0], [0.0, 3.0, 0.0], [2.0, 0.0, 1.0]])
    means = means_of(table, weights)
    assert means[0, 0, 0] == 2.0
    assert np.isnan(means[1, 0, 0])
    assert means[2, 0, 0] == 5 / 3
    assert np.isnan(means[:, 0, 1]).all()
    assert drawn_counts(table, weights)[:, 0, 0].tolist() == [2.0, 0.0, 3.0]


def test_the_central_share_of_draws() -> None:
    low, high = central(np.stack([np.arange(101.0), np.full(101, np.nan)], axis=1))
    assert (low[0], high[0]) == pytest.approx((2.5, 97.5))
    assert np.isnan([low[1], high[1]]).all()
