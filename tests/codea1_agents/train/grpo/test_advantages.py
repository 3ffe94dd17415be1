"""Advantages and the choice of suites, whole and by parts, against the formulas computed one number at a time."""

from __future__ import annotations

import math
import statistics
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from codea1_agents.train.grpo.advantages import (
    GroupedPart,
    advantages_by_parts,
    group_advantages,
    grouped_parts,
    over_batch,
    top_variance,
)
from codea1_env.errors import UserError
from codea1_env.rules.reward_parts import MASKED, Reward, RewardPart
from tests.support.advantages import by_hand, z

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
def test_the_advantages_of_a_group_sum_to_nothing(rewards: np.ndarray) -> None:
    assert abs(group_advantages(rewards).values.sum(axis=-1)).max() < 1e-6


def test_a_masked_rollout_changes_nothing_for_the_others() -> None:
    with_mask, without = (
        group_advantages(np.array([[1.0, NAN, 0.0, 0.5]])),
        group_advantages(np.array([[1.0, 0.0, 0.5]])),
    )
    assert with_mask.values[0, [0, 2, 3]] == pytest.approx(without.values[0])


def test_leading_axes_are_kept() -> None:
    rewards = np.arange(24.0).reshape(2, 3, 4)
    assert group_advantages(rewards).values.shape == (2, 3, 4)


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


SHARE = st.integers(0, 8).map(lambda n: n / 8)
WEIGHT = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0])


@st.composite
def grouped(draw: st.DrawFn, masks: bool = True) -> list[GroupedPart]:
    """Validity, adversity and a penalty of a few groups."""
    shape = (draw(st.integers(1, 4)), draw(st.integers(2, 8)))
    mask = draw(arrays(np.bool_, shape)) if masks else np.zeros(shape, bool)
    alpha = draw(WEIGHT)
    weights = {"validity": alpha, "adversarial": 1 - alpha, "nonprintable": -0.5}
    values = {name: np.where(mask, NAN, draw(arrays(np.float64, shape, elements=SHARE))) for name in weights}
    return [GroupedPart(name, values[name], weight) for name, weight in weights.items()]


def two_parts(validity: Any, adversarial: Any, alpha: float = 0.5) -> list[GroupedPart]:
    return [
        GroupedPart("validity", np.asarray(validity), alpha),
        GroupedPart("adversarial", np.asarray(adversarial), 1 - alpha),
    ]


@given(grouped(), st.sampled_from(["sum", "decoupled", "conditioned"]), st.sampled_from([0.125, 0.5, 1.0]))
def test_each_form_is_its_formula(parts: list[GroupedPart], form: str, valid_from: float) -> None:
    found = advantages_by_parts(parts, form, valid_from=valid_from)  # type: ignore[arg-type]
    weights = {part.name: part.weight for part in parts}
    for group, row in enumerate(found.values.tolist()):
        columns = {part.name: part.values[group].tolist() for part in parts}
        assert row == pytest.approx(by_hand(columns, weights, form, valid_from), abs=1e-9)
    known = ~np.isnan(parts[0].values)
    assert not found.is_trained[~known].any()
    assert np.array_equal(found.is_trained.any(axis=-1), (known & found.is_trained).sum(axis=-1) >= 2)
    assert abs(found.values.sum(axis=-1)).max() < 1e-6
    assert not found.values[~found.is_trained].any()


@given(grouped(), st.sampled_from(["decoupled", "conditioned"]))
def test_flat_groups_train_where_they_are_kept(parts: list[GroupedPart], form: str) -> None:
    kept, plain = (advantages_by_parts(parts, form, keeps_flat=keeps) for keeps in (True, False))  # type: ignore[arg-type]
    known = ~np.isnan(parts[0].values)
    assert np.array_equal(kept.is_trained, known & (known.sum(axis=-1, keepdims=True) >= 2))
    assert np.array_equal(kept.values, plain.values)


@given(grouped(), st.sampled_from([0.25, 0.5, 2.0]), st.integers(-2, 2))
def test_the_unit_of_a_part_does_not_matter_to_decoupled_advantages(
    parts: list[GroupedPart], scale: float, offset: int
) -> None:
    other = [GroupedPart(each.name, each.values * scale + offset, each.weight) for each in parts]
    found, plain = (advantages_by_parts(each, "decoupled").values for each in (other, parts))
    # 1e-6 beside a deviation changes z by |z| * 1e-6 * |1 / scale - 1| / deviation. Eighths deviate least where
    # one of 8 differs: 1/8 / sqrt(8), its z is 7 / sqrt(8); the weights are 1.5 together.
    most = 1.5 * 7 / 8**0.5 * 1e-6 * abs(1 / scale - 1) / (1 / 8 / 8**0.5)
    assert np.abs(found - plain).max() <= most


@given(grouped(), st.integers(0, 8).map(lambda n: n / 8))
def test_replays_do_not_change_the_weight_of_validity_in_decoupled_advantages(
    parts: list[GroupedPart], fail_replayed: float
) -> None:
    """Eq. 3 halves adversity within a group, which is a change of alpha in `sum`."""
    validity, adversity, penalty = parts
    with_book = GroupedPart(adversity.name, (adversity.values - fail_replayed + 1) / 2, adversity.weight)
    for form in ("decoupled", "conditioned"):
        found = advantages_by_parts([validity, with_book, penalty], form).values  # type: ignore[arg-type]
        assert found == pytest.approx(advantages_by_parts(parts, form).values, abs=1e-4)  # type: ignore[arg-type]


@given(grouped(), st.data())
def test_what_an_invalid_suite_beats_changes_nothing_in_conditioned_advantages(
    parts: list[GroupedPart], data: st.DataObject
) -> None:
    validity, adversity, penalty = parts
    others = data.draw(arrays(np.float64, adversity.values.shape, elements=SHARE))
    changed = np.where(validity.values < 0.5, others, adversity.values)  # nan is not less
    found = advantages_by_parts(
        [validity, GroupedPart("adversarial", changed, adversity.weight), penalty], "conditioned"
    )
    assert np.array_equal(found.values, advantages_by_parts(parts, "conditioned").values)


@given(grouped())
def test_conditioned_is_decoupled_where_all_suites_are_valid(parts: list[GroupedPart]) -> None:
    validity, *others = parts
    valid = [GroupedPart(validity.name, np.maximum(validity.values, 0.5), validity.weight), *others]
    assert np.array_equal(
        advantages_by_parts(valid, "conditioned").values, advantages_by_parts(valid, "decoupled").values
    )


@given(grouped(masks=False))
def test_one_part_alone_is_the_sum(parts: list[GroupedPart]) -> None:
    alone = [GroupedPart("failed", parts[0].values, 1.0)]
    assert np.array_equal(advantages_by_parts(alone, "decoupled").values, group_advantages(parts[0].values).values)


def test_a_part_without_weight_makes_no_group_differ() -> None:
    parts = two_parts([[0.0, 1.0]], [[1.0, 1.0]], alpha=0.0)
    for form in ("sum", "decoupled", "conditioned"):
        found = advantages_by_parts(parts, form)  # type: ignore[arg-type]
        assert not found.is_trained.any()


def test_groups_whose_parts_cancel_train_by_parts_only() -> None:
    parts = two_parts([[0.5, 1.0, 0.5]], [[0.5, 0.0, 0.5]])
    assert not advantages_by_parts(parts, "sum").is_trained.any()
    assert advantages_by_parts(parts, "decoupled").is_trained.all()


def test_a_valid_suite_that_beats_nothing_gets_less_than_an_invalid_one_where_validity_weighs_little() -> None:
    for alpha, is_less in ((0.1, True), (0.28, True), (0.3, False), (0.5, False)):
        parts = two_parts([[1.0, 1.0, 0.0, 0.0]], [[1.0, 0.0, 0.0, 0.0]], alpha)
        _, harmless, invalid, _ = advantages_by_parts(parts, "conditioned").values[0]
        assert (harmless < invalid) == is_less


def test_validity_is_compared_up_to_rounding() -> None:
    parts = two_parts([[0.1 + 0.2, 0.3, 0.0]], [[1.0, 0.0, 1.0]], alpha=0.0)
    found = advantages_by_parts(parts, "conditioned", valid_from=0.1 + 0.2)
    assert found.values[0] == pytest.approx([0.5**0.5, -(0.5**0.5), 0.0], abs=1e-5)


@given(
    arrays(
        np.float64,
        st.tuples(st.integers(1, 4), st.integers(1, 6)),
        elements=st.floats(-2, 2).map(lambda x: round(x, 3)),
    )
)
def test_over_the_batch_advantages_have_mean_0_and_deviation_1(advantages: np.ndarray) -> None:
    found = over_batch(advantages)
    assert found.shape == advantages.shape
    assert found.ravel().tolist() == pytest.approx(z(advantages.ravel().tolist()))


def test_leading_axes_of_parts_are_kept() -> None:
    draw = np.random.default_rng(0)
    parts = two_parts(draw.random((2, 3, 4)), draw.random((2, 3, 4)))
    found = advantages_by_parts(parts, "conditioned")
    assert found.values.shape == (2, 3, 4)


def test_rewards_without_the_parts_that_a_form_compares_are_refused() -> None:
    values = np.zeros((1, 2))
    with pytest.raises(UserError, match="these have failed"):
        advantages_by_parts([GroupedPart("failed", values, 1.0)], "conditioned")
    with pytest.raises(UserError, match="these have format, validity"):
        advantages_by_parts([GroupedPart("validity", values, 0.5), GroupedPart("format", values, 0.5)], "conditioned")
    with pytest.raises(UserError, match="'decoupled' compares the parts"):
        advantages_by_parts([], "decoupled")


def test_parts_of_rewards_are_grouped_with_their_weights() -> None:
    paid = [
        [Reward.of(RewardPart("validity", 0.5, 0.25), RewardPart("adversarial", v, 0.75)) for v in (0.0, 1.0)],
        [MASKED, Reward.of()],
    ]
    flat = [reward for row in paid for reward in row]
    adversarial, validity = grouped_parts(
        flat, lambda number: np.array([[number(each) for each in row] for row in paid])
    )
    weights = {part.name: part.weight for part in (adversarial, validity)}
    assert list(weights.items()) == [("adversarial", 0.75), ("validity", 0.25)]
    assert np.array_equal(adversarial.values, [[0.0, 1.0], [NAN, 0.0]], equal_nan=True)
    assert np.array_equal(validity.values, [[0.5, 0.5], [NAN, 0.0]], equal_nan=True)
    with pytest.raises(UserError, match="the weight of 'validity' differs"):
        grouped_parts([*flat, Reward.of(RewardPart("validity", 1.0, 0.5))], lambda number: np.zeros((1, 1)))
