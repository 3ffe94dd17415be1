"""Advantages of groups of rewards, and the choice of the candidates whose suites train the tester.

Pure functions on arrays. The reward of a masked rollout (a failure of the sandbox, not of the agent) is nan. It has no
advantage and changes no other advantage.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_EPSILON = 1e-6  # as in verl's core_algos
_MIN_SPREAD = 1e-8  # smaller differences of rewards are rounding

Rewards = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Advantages:
    """Advantages of groups of equal size."""

    values: Rewards
    """Shape (..., G), as the rewards; 0 where `is_trained` is False."""
    is_trained: NDArray[np.bool_]
    """Shape (..., G): False for masked rollouts, and in groups without spread unless these are kept."""
    n_groups: int
    n_flat: int
    """Groups of equal rewards: their advantages are 0."""
    n_masked: int
    """Groups with fewer than two rollouts that are not masked."""


def group_advantages(rewards: Rewards, *, keeps_flat: bool = False) -> Advantages:
    """Return the advantage of each rollout over its group.

    Args:
        rewards: shape (..., G), one group per last axis; nan masks a rollout.
        keeps_flat: whether groups of equal rewards train, as in the official code. Their advantages are 0: they count
            in the divergence and in the mean over tokens.

    Returns:
        `(r - mean) / (std + 1e-6)` over the rollouts of a group that are not masked; `std` divides by their number less
        one, as in the official code. Groups with fewer than two rollouts do not train.
    """
    rewards = np.asarray(rewards, dtype=np.float64)
    known = ~np.isnan(rewards)
    n_known = known.sum(axis=-1, keepdims=True)
    filled = np.where(known, rewards, 0.0)
    mean = filled.sum(axis=-1, keepdims=True) / np.maximum(n_known, 1)
    centred = np.where(known, filled - mean, 0.0)
    std = np.sqrt((centred**2).sum(axis=-1, keepdims=True) / np.maximum(n_known - 1, 1))
    has_enough, has_spread = n_known >= 2, std > _MIN_SPREAD
    is_trained = known & has_enough & (has_spread | keeps_flat)
    values = np.where(is_trained & has_spread, centred / (std + _EPSILON), 0.0)
    return Advantages(
        values=values,
        is_trained=is_trained,
        n_groups=int(n_known.size),
        n_flat=int((has_enough & ~has_spread).sum()),
        n_masked=int((~has_enough).sum()),
    )


def top_variance(rewards: Rewards, n_kept: int = 1, *, keeps_flat: bool = False) -> NDArray[np.bool_]:
    """Return the candidates whose suites train the tester: those whose suites have the most different rewards.

    Args:
        rewards: shape (..., N, M), of M suites for each of N candidates; nan masks a suite.
        n_kept: candidates to keep per problem, at least 1 (l in the paper; 1 in its runs).
        keeps_flat: whether candidates whose suites have equal rewards may be kept, as in the official code.

    Returns:
        Shape (..., N): at most `n_kept` True per problem. Of equals, the earlier candidate.

    Raises:
        ValueError: `n_kept` below 1.
    """
    if n_kept < 1:
        raise ValueError(f"at least one candidate per problem must be kept, not {n_kept}")
    rewards = np.asarray(rewards, dtype=np.float64)
    known = ~np.isnan(rewards)
    n_known = np.maximum(known.sum(axis=-1), 1)
    filled = np.where(known, rewards, 0.0)
    mean = filled.sum(axis=-1) / n_known
    variance = np.where(known, (filled - mean[..., None]) ** 2, 0.0).sum(axis=-1) / n_known
    order = np.argsort(-variance, axis=-1, kind="stable")
    rank = np.argsort(order, axis=-1, kind="stable")
    has_spread = np.sqrt(variance) > _MIN_SPREAD
    kept: NDArray[np.bool_] = (rank < n_kept) & (has_spread | keeps_flat) & (known.sum(axis=-1) >= 2)
    return kept
