"""What GRPO does with groups of rewards before any gradient: advantages, and which candidates' suites to learn from.

Pure functions on arrays. A masked rollout (our own failure) is nan: it has no advantage and changes nobody else's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_EPSILON = 1e-6  # method.md 1.9 (verl, core_algos): A = (r - mean) / (std + 1e-6), with the sample's std
_MIN_SPREAD = 1e-8  # rewards nearer to each other are equal up to rounding

Rewards = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Advantages:
    """Advantages of groups of equal size."""

    values: Rewards
    """Shape (..., G), as the rewards; 0 where nothing is to be learnt."""
    is_trained: NDArray[np.bool_]
    """Shape (..., G): False for masked rollouts, and in groups without spread unless these are kept."""
    n_groups: int
    n_flat: int
    """Groups whose rewards are all equal, so that nothing can be learnt from them."""
    n_masked: int
    """Groups with fewer than two rollouts left after masking."""


def group_advantages(rewards: Rewards, *, keeps_flat: bool = False) -> Advantages:
    """Return the advantage of each rollout over its group.

    Args:
        rewards: shape (..., G), one group per last axis; nan masks a rollout.
        keeps_flat: whether groups without spread are trained, with advantages of 0: they count in the divergence and
            in the mean over tokens (the release, method.md 1.8).

    Returns:
        `(r - mean) / (std + 1e-6)` over the rollouts of a group that are not masked, `std` with one degree of freedom
        less (method.md 1.9). Groups with fewer than two rollouts are not trained.
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
    """Return which candidates' suites to learn from: those about whose suites the rewards differ most.

    Args:
        rewards: shape (..., N, M), of M suites for each of N candidates; nan masks a suite.
        n_kept: how many candidates to keep per problem, at least 1 (l in the paper, 1 by default there).
        keeps_flat: whether candidates without spread are kept where no others are left (the release, method.md 1.8).

    Returns:
        Shape (..., N): at most `n_kept` True per problem. Ties: the earlier candidate.

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
