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
from codea1_env.rules.rewards import MASKED, Reward, RewardPart
from tests.support.advantages import by_hand, z

NAN = float("nan")
REWARD = st.floats(-1, 1).map(lambda x: round(x, 3))
SHAPE = st.tuples(st.integers(1, 4), st.integers(1, 8)) | st.tuples(st.just(2), st.integers(1, 3), st.integers(1, 4))
GROUPS = arrays(np.float64, SHAPE, elements=REWARD | st.just(NAN))


@given(GROUPS)
def test_an_advantage_is_the_distance_from_the_groups_mean_in_sample_deviations(rewards: np.ndarray) -> None:
    found = group_advantages(rewards)
    assert found.values.shape == rewards.shape
    assert abs(found.values.sum(axis=-1)).max() < 1e-6
    rows = (each.reshape(-1, rewards.shape[-1]) for each in (rewards, found.values, found.is_trained))
    for group, values, trained in zip(*rows, strict=True):
        known = [r for r in group.tolist() if not math.isnan(r)]
        differs = len(known) > 1 and statistics.stdev(known) > 1e-8
        assert values.tolist() == pytest.approx(z(group.tolist()))
        assert trained.tolist() == [differs and not math.isnan(r) for r in group]
        assert not values[~trained].any()


def test_the_candidate_is_kept_whose_suites_differ_most() -> None:
    rewards = np.array([[0.5, 0.5], [0.0, 1.0], [0.2, 0.4]])
    assert top_variance(rewards).tolist() == [False, True, False]
    assert top_variance(rewards, 2).tolist() == [False, True, True]
    assert top_variance(rewards, 9).tolist() == [False, True, True]  # without spread there is nothing to learn
    assert top_variance(np.array([[0.0, 1.0], [1.0, 0.0]])).tolist() == [True, False]  # ties go to the earlier one
    assert top_variance(np.array([[0.0, NAN], [0.1, 0.2]])).tolist() == [False, True]
    assert not top_variance(np.full((2, 2), NAN)).any()
    with pytest.raises(ValueError, match="at least one"):
        top_variance(rewards, 0)


def test_flat_groups_are_kept_with_advantages_of_nothing_where_that_is_asked_for() -> None:
    rewards = np.array([[0.5, 0.5, NAN], [0.1, 0.1 + 1e-12, 0.1], [0.0, 1.0, NAN], [0.5, NAN, NAN]])
    found = group_advantages(rewards, keeps_flat=True)
    assert found.is_trained.tolist() == [[True, True, False], [True] * 3, [True, True, False], [False] * 3]
    assert not found.values[:2].any()
    assert found.values[2].any()
    assert top_variance(rewards, 2, keeps_flat=True).sum() == 2
    assert top_variance(rewards[:2], 1, keeps_flat=True).sum() == 1  # the release learns from as many suites each step
    assert not top_variance(rewards[3:], 1, keeps_flat=True).any()


@given(arrays(np.float64, (3, 4, 5), elements=REWARD), st.integers(1, 5))
def test_each_problem_keeps_at_most_so_many_and_never_a_smaller_spread_before_a_larger(rewards, n_kept):
    kept = top_variance(rewards, n_kept)
    assert (kept.sum(axis=-1) <= n_kept).all()
    spread = rewards.var(axis=-1)
    for problem in range(3):
        left_out = spread[problem][~kept[problem]]
        if kept[problem].sum() == n_kept:
            assert spread[problem][kept[problem]].min() >= left_out.max(initial=0.0) - 1e-12


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
    columns = {"validity": (validity, alpha), "adversarial": (adversarial, 1 - alpha)}
    return [GroupedPart(name, np.array(values, float), weight) for name, (values, weight) in columns.items()]


@given(grouped(), st.sampled_from(["sum", "decoupled", "conditioned"]), st.sampled_from([0.125, 0.5, 1.0]))
def test_each_form_is_its_formula(parts: list[GroupedPart], form: str, valid_from: float) -> None:
    found = advantages_by_parts(parts, form, valid_from=valid_from)
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
    kept, plain = (advantages_by_parts(parts, form, keeps_flat=keeps) for keeps in (True, False))
    known = ~np.isnan(parts[0].values)
    assert np.array_equal(kept.is_trained, known & (known.sum(axis=-1, keepdims=True) >= 2))
    assert np.array_equal(kept.values, plain.values)


@given(grouped(), st.sampled_from([0.25, 0.5, 2.0]), st.integers(-2, 2))
def test_the_unit_of_a_part_does_not_matter_to_decoupled_advantages(parts, scale, offset):
    other = [GroupedPart(each.name, each.values * scale + offset, each.weight) for each in parts]
    found, plain = (advantages_by_parts(each, "decoupled").values for each in (other, parts))
    # 1e-6 beside a deviation changes z by |z| * 1e-6 * |1 / scale - 1| / deviation. Eighths deviate least where
    # one of 8 differs: 1/8 / sqrt(8), its z is 7 / sqrt(8); the weights are 1.5 together.
    most = 1.5 * 7 / 8**0.5 * 1e-6 * abs(1 / scale - 1) / (1 / 8 / 8**0.5)
    assert np.abs(found - plain).max() <= most


@given(grouped(), st.integers(0, 8).map(lambda n: n / 8))
def test_replays_do_not_change_the_weight_of_validity_in_decoupled_advantages(parts, fail_replayed):
    """Eq. 3 halves adversity within a group, which is a change of alpha in `sum`."""
    validity, adversity, penalty = parts
    with_book = GroupedPart(adversity.name, (adversity.values - fail_replayed + 1) / 2, adversity.weight)
    for form in ("decoupled", "conditioned"):
        found = advantages_by_parts([validity, with_book, penalty], form).values
        assert found == pytest.approx(advantages_by_parts(parts, form).values, abs=1e-4)


@given(grouped(), st.data())
def test_what_an_invalid_suite_beats_changes_nothing_in_conditioned_advantages(parts, data):
    validity, adversity, penalty = parts
    others = data.draw(arrays(np.float64, adversity.values.shape, elements=SHARE))
    changed = np.where(validity.values < 0.5, others, adversity.values)  # nan is not less
    others = [validity, GroupedPart("adversarial", changed, adversity.weight), penalty]
    found = advantages_by_parts(others, "conditioned")
    assert np.array_equal(found.values, advantages_by_parts(parts, "conditioned").values)


@given(grouped())
def test_conditioned_is_decoupled_where_all_suites_are_valid(parts: list[GroupedPart]) -> None:
    validity, *others = parts
    valid = [GroupedPart(validity.name, np.maximum(validity.values, 0.5), validity.weight), *others]
    decoupled = advantages_by_parts(valid, "decoupled").values
    assert np.array_equal(advantages_by_parts(valid, "conditioned").values, decoupled)
    deeper = [GroupedPart(each.name, each.values[np.newaxis], each.weight) for each in valid]
    assert np.array_equal(advantages_by_parts(deeper, "conditioned").values, decoupled[np.newaxis])


@given(grouped(masks=False))
def test_one_part_alone_is_the_sum(parts: list[GroupedPart]) -> None:
    alone = [GroupedPart("failed", parts[0].values, 1.0)]
    assert np.array_equal(advantages_by_parts(alone, "decoupled").values, group_advantages(parts[0].values).values)


def test_a_part_without_weight_makes_no_group_differ_and_parts_that_cancel_do_without_the_sum() -> None:
    without_weight, cancelling = two_parts([[0, 1]], [[1, 1]], alpha=0), two_parts([[0.5, 1, 0.5]], [[0.5, 0, 0.5]])
    for form in ("sum", "decoupled", "conditioned"):
        assert not advantages_by_parts(without_weight, form).is_trained.any()
    assert not advantages_by_parts(cancelling, "sum").is_trained.any()
    assert advantages_by_parts(cancelling, "decoupled").is_trained.all()


def test_a_valid_suite_that_beats_nothing_gets_less_than_an_invalid_one_where_validity_weighs_little() -> None:
    for alpha, is_less in ((0.1, True), (0.28, True), (0.3, False), (0.5, False)):
        parts = two_parts([[1.0, 1.0, 0.0, 0.0]], [[1.0, 0.0, 0.0, 0.0]], alpha)
        _, harmless, invalid, _ = advantages_by_parts(parts, "conditioned").values[0]
        assert (harmless < invalid) == is_less


def test_validity_is_compared_up_to_rounding() -> None:
    parts = two_parts([[0.1 + 0.2, 0.3, 0.0]], [[1.0, 0.0, 1.0]], alpha=0.0)
    found = advantages_by_parts(parts, "conditioned", valid_from=0.1 + 0.2)
    assert found.values[0] == pytest.approx([0.5**0.5, -(0.5**0.5), 0.0], abs=1e-5)


@given(arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 6)), elements=REWARD.map(lambda x: 2 * x)))
def test_over_the_batch_advantages_have_mean_0_and_deviation_1(advantages: np.ndarray) -> None:
    found = over_batch(advantages)
    assert found.shape == advantages.shape
    assert found.ravel().tolist() == pytest.approx(z(advantages.ravel().tolist()))


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
    found = grouped_parts(flat, lambda number: np.array([[number(each) for each in row] for row in paid]))
    adversarial, validity = found
    assert [(part.name, part.weight) for part in found] == [("adversarial", 0.75), ("validity", 0.25)]
    assert np.array_equal(adversarial.values, [[0.0, 1.0], [NAN, 0.0]], equal_nan=True)
    assert np.array_equal(validity.values, [[0.5, 0.5], [NAN, 0.0]], equal_nan=True)
    with pytest.raises(UserError, match="the weight of 'validity' differs"):
        grouped_parts([*flat, Reward.of(RewardPart("validity", 1.0, 0.5))], lambda number: np.zeros((1, 1)))
