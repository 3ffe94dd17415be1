"""What the rewards of a tree are, given its report: the arithmetic of groups."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from codea1_env.errors import UserError
from codea1_env.rounds.rounds import Tree
from codea1_env.rules.reward_parts import mean_over_candidates

NAN = float("nan")
REWARD = st.floats(-1, 1).map(lambda x: round(x, 3))
GROUPS = arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 8)), elements=REWARD | st.just(NAN))


def test_a_tree_needs_a_candidate(toys):
    for sizes in ({"n_candidates": 0}, {"n_suites": -1}):
        with pytest.raises(UserError, match="must be a whole number of"):
            Tree(toys[0], **sizes)


@given(GROUPS)
def test_a_suite_of_all_candidates_is_worth_the_mean_over_those_that_tell(rewards: np.ndarray) -> None:
    found = mean_over_candidates(rewards)
    assert found.shape == rewards.shape[1:]
    for column, value in zip(rewards.T, found, strict=True):
        known = [reward for reward in column if not math.isnan(reward)]
        assert value == pytest.approx(statistics.mean(known)) if known else math.isnan(value)


@given(GROUPS, st.randoms(use_true_random=False))
def test_neither_the_order_of_candidates_nor_those_that_tell_nothing_matter(rewards: np.ndarray, random) -> None:
    order = list(range(len(rewards)))
    random.shuffle(order)
    silent = np.full((1, rewards.shape[1]), NAN)
    other = mean_over_candidates(np.concatenate([rewards[order], silent]))
    np.testing.assert_allclose(mean_over_candidates(rewards), other, atol=1e-12)
