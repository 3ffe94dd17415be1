"""Advantages and the choice of suites, against the formulas computed one number at a time."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from codea1_agents.train.grpo.grouping import group_advantages, top_variance

NAN = float("nan")
REWARD = st.floats(-1, 1).map(lambda x: round(x, 3))
GROUPS = arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 8)), elements=REWARD | st.just(NAN))


@given(GROUPS)
def test_an_advantage_is_the_distance_from_the_groups_mean_in_sample_deviations(rewards: np.ndarray) -> None:
    found = group_advantages(rewards)
    for group, values, trained in zip(rewards, found.values, found.is_trained, strict=True):
        known = [r for r in group if not math.isnan(r)]
        std = statistics.stdev(known) if len(known) > 1 else 0.0
        for reward, value, is_trained in zip(group, values, trained, strict=True):
            if std <= 1e-8 or math.isnan(reward):
                assert (value, is_trained) == (0.0, False)
            else:
                assert is_trained
                assert value == pytest.approx((reward - statistics.mean(known)) / (std + 1e-6))


@given(GROUPS)
def test_every_group_is_trained_flat_or_masked(rewards: np.ndarray) -> None:
    found = group_advantages(rewards)
    n_trained = int(found.is_trained.any(axis=-1).sum())
    assert n_trained + found.n_flat + found.n_masked == found.n_groups == len(rewards)
    assert abs(found.values.sum(axis=-1)).max() < 1e-6


def test_a_masked_rollout_changes_nothing_for_the_others() -> None:
    with_mask, without = (
        group_advantages(np.array([[1.0, NAN, 0.0, 0.5]])),
        group_advantages(np.array([[1.0, 0.0, 0.5]])),
    )
    assert with_mask.values[0, [0, 2, 3]] == pytest.approx(without.values[0])


def test_leading_axes_are_kept() -> None:
    rewards = np.arange(24.0).reshape(2, 3, 4)
    assert group_advantages(rewards).values.shape == (2, 3, 4)
    assert group_advantages(rewards).n_groups == 6


def test_the_candidate_is_kept_whose_suites_differ_most() -> None:
    rewards = np.array([[0.5, 0.5], [0.0, 1.0], [0.2, 0.4]])
    assert top_variance(rewards).tolist() == [False, True, False]
    assert top_variance(rewards, 2).tolist() == [False, True, True]
    assert top_variance(rewards, 9).tolist() == [False, True, True]  # without spread there is nothing to learn


def test_flat_groups_are_kept_with_advantages_of_nothing_where_that_is_asked_for() -> None:
    rewards = np.array([[0.5, 0.5, NAN], [0.1, 0.1 + 1e-12, 0.1], [0.0, 1.0, NAN], [0.5, NAN, NAN]])
    found = group_advantages(rewards, keeps_flat=True)
    assert found.is_trained.tolist() == [[True, True, False], [True] * 3, [True, True, False], [False] * 3]
    assert not found.values[:2].any()
    assert found.values[2].any()
    assert (found.n_flat, found.n_masked) == (2, 1)
    assert top_variance(rewards, 2, keeps_flat=True).sum() == 2
    assert top_variance(rewards[:2], 1, keeps_flat=True).sum() == 1  # the release learns from as many suites each step
    assert not top_variance(rewards[3:], 1, keeps_flat=True).any()


def test_ties_go_to_the_earlier_candidate_and_masked_suites_do_not_count() -> None:
    assert top_variance(np.array([[0.0, 1.0], [1.0, 0.0]])).tolist() == [True, False]
    assert top_variance(np.array([[0.0, NAN], [0.1, 0.2]])).tolist() == [False, True]
    assert top_variance(np.array([[NAN, NAN], [NAN, NAN]])).tolist() == [False, False]


@given(arrays(np.float64, (3, 4, 5), elements=REWARD), st.integers(1, 5))
def test_each_problem_keeps_at_most_so_many_and_never_a_smaller_spread_before_a_larger(
    rewards: np.ndarray, n_kept: int
) -> None:
    kept = top_variance(rewards, n_kept)
    assert (kept.sum(axis=-1) <= n_kept).all()
    spread = rewards.var(axis=-1)
    for problem in range(3):
        left_out = spread[problem][~kept[problem]]
        if kept[problem].sum() == n_kept:
            assert spread[problem][kept[problem]].min() >= left_out.max(initial=0.0) - 1e-12


def test_at_least_one_candidate_is_kept() -> None:
    with pytest.raises(ValueError, match="at least one"):
        top_variance(np.zeros((2, 2)), 0)
