"""Advantages of groups of rewards, whole or by their parts, and the choice of the candidates whose suites train.

Pure functions on arrays. The reward of a masked rollout (a failure of the sandbox, not of the agent) is nan. It has no
advantage and changes no other advantage. Where nothing tells the rollouts of a group apart, their advantages are 0 in
every form, until `over_batch` subtracts the mean of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from operator import methodcaller
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from codea1_env.errors import UserError
from codea1_env.rules.rewards import Reward

_EPSILON = 1e-6  # as in verl's core_algos
_MIN_SPREAD = 1e-8  # smaller differences of rewards are rounding
_ROUNDING = 1e-9  # 1 - 0.9 is less than 0.1

Rewards = NDArray[np.float64]
AdvantageForm = Literal["sum", "decoupled", "conditioned"]
ReturnForm = Literal["last", "sum"]

VALIDITY = "validity"
"""The part that says which suites are valid."""
ADVERSITY = frozenset({"adversarial", "discrimination"})
"""The parts that pay a suite for what its program fails, in the reward schemes that have `validity`, too."""


@dataclass(frozen=True, slots=True)
class Advantages:
    """Advantages of groups of equal size."""

    values: Rewards
    """Shape (..., G), as the rewards; 0 where `is_trained` is False."""
    is_trained: NDArray[np.bool_]
    """Shape (..., G): False for masked rollouts, and in groups without spread unless these are kept."""


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
    has_spread = std > _MIN_SPREAD
    is_trained = known & (n_known >= 2) & (has_spread | keeps_flat)
    values = np.where(is_trained & has_spread, centred / (std + _EPSILON), 0.0)
    return Advantages(values, is_trained)


def trajectory_returns(
    rewards: Sequence[Rewards], numbers: Sequence[Sequence[int]], n_turns: int, form: ReturnForm, discount: float
) -> Rewards:
    """Return what each trajectory of a problem is worth; its advantage is that of the coder's reply in each turn.

    A trajectory that is over before the last turn keeps its last reward for the turns that it does not need, so that a
    program that is right at once is worth more than one that is repaired.

    Args:
        rewards: by turn, (N,) of the coder, of which those of the trajectories that play the turn count; nan masks.
        numbers: by turn, which trajectories play it.
        n_turns: of a trajectory that is never over.
        form: `last`: the reward of the last turn. `sum`: of all turns.
        discount: factor per turn in the sum.

    Returns:
        (N,); nan for a trajectory that is masked in any turn: its worth is not known.
    """
    latest = np.array(rewards[0], dtype=np.float64)
    total = latest.copy()
    for turn in range(1, n_turns):
        if turn < len(rewards):
            playing = list(numbers[turn])
            latest[playing] = rewards[turn][playing]
        total = total + discount**turn * latest
    return np.where(np.isnan(total), np.nan, latest) if form == "last" else total


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
    can_differ: NDArray[np.bool_] = known.sum(axis=-1) >= 2
    return can_differ & largest(variance, n_kept, keeps_flat=keeps_flat)


def largest(variance: Rewards, n_kept: int, *, keeps_flat: bool = False) -> NDArray[np.bool_]:
    """Return which candidates of a problem, (..., N), have the largest variances; see `top_variance`."""
    order = np.argsort(-variance, axis=-1, kind="stable")
    rank = np.argsort(order, axis=-1, kind="stable")
    kept: NDArray[np.bool_] = (rank < n_kept) & ((np.sqrt(variance) > _MIN_SPREAD) | keeps_flat)
    return kept


@dataclass(frozen=True, slots=True)
class GroupedPart:
    """One part of the rewards of groups; a reward is the sum of its parts times their weights."""

    name: str
    values: Rewards
    """Shape (..., G), one group per last axis, the same for all parts; nan masks a rollout, in all parts."""
    weight: float


def grouped_parts(
    rewards: Iterable[Reward], grouped: Callable[[Callable[[Reward], float]], Rewards]
) -> list[GroupedPart]:
    """Return the parts of the rewards of suites, in the order of their names; a missing part is 0.

    Args:
        rewards: of all suites.
        grouped: returns the array (..., G) of a number of each reward.

    Raises:
        UserError: a part has different weights in two of them, so that no number is its weight in the group.
    """
    weights: dict[str, float] = {}
    for part in (part for reward in rewards for part in reward.parts):
        if weights.setdefault(part.name, part.weight) != part.weight:
            raise UserError(f"advantages by parts: the weight of {part.name!r} differs between the suites of a problem")
    return [GroupedPart(name, grouped(methodcaller("part", name)), weights[name]) for name in sorted(weights)]


def advantages_by_parts(
    parts: Sequence[GroupedPart], form: AdvantageForm, *, valid_from: float = 0.5, keeps_flat: bool = False
) -> Advantages:
    """Return the advantage of each rollout over its group.

    With z(x) = (x - mean) / (std + 1e-6) over the rollouts of a group, 0 where they do not differ (`group_advantages`):

    - `sum`: z(sum of weight * part).
    - `decoupled`: sum of weight * z(part) (GDPO, arXiv 2601.05242). Its second step is `over_batch`.
    - `conditioned`: as `decoupled`, but the z of the parts in `ADVERSITY` is over the valid rollouts only, those whose
      `validity` is at least `valid_from`; it is 0 for the others. PAPO (arXiv 2603.26535) compares the process rewards
      of right answers only in this way.

    Args:
        parts: at least one, of distinct names.
        form: of the advantages.
        valid_from: smallest validity of a valid rollout, in (0, 1].
        keeps_flat: as in `group_advantages`.

    Returns:
        As `group_advantages`. In `decoupled` and `conditioned`, a group is flat if each part with a weight is.

    Raises:
        UserError: see `require_parts`.
    """
    require_parts({part.name for part in parts}, form)
    total = sum(part.weight * part.values for part in parts)
    if form == "sum":
        return group_advantages(np.asarray(total), keeps_flat=keeps_flat)
    whole = group_advantages(np.asarray(total), keeps_flat=True)
    terms = [part.weight * group_advantages(_compared_values(part, parts, form, valid_from)).values for part in parts]
    has_spread = np.any([term.any(axis=-1) for term in terms], axis=0)
    return Advantages(
        values=np.where(whole.is_trained, sum(terms), 0.0),
        is_trained=whole.is_trained & (has_spread | keeps_flat)[..., np.newaxis],
    )


def over_batch(advantages: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return advantages less their mean, over their deviation: the second step of `decoupled` (GDPO's Eq. of A_sum).

    Args:
        advantages: any shape, of all responses of an iteration that train; nan masks one.

    Returns:
        The same shape; 0 where nothing differs.
    """
    return group_advantages(np.ravel(advantages)).values.reshape(np.shape(advantages))


def has_parts(names: Set[str], form: AdvantageForm) -> bool:
    """Return whether rewards with parts of these names can be compared in a form of advantages."""
    if form == "conditioned":
        return VALIDITY in names and bool(names & ADVERSITY)
    return form == "sum" or bool(names)


def require_parts(names: Set[str], form: AdvantageForm) -> None:
    """Check that rewards have the parts that a form of advantages compares.

    Raises:
        UserError: they have not.
    """
    if has_parts(names, form):
        return
    if not names:
        raise UserError(f"advantages={form!r} compares the parts of suites' rewards, and these have none")
    raise UserError(
        f"advantages='conditioned' needs rewards of suites with a part {VALIDITY!r} and one of "
        f"{', '.join(sorted(ADVERSITY))}; these have {', '.join(sorted(names))}"
    )


def _compared_values(
    part: GroupedPart, parts: Sequence[GroupedPart], form: AdvantageForm, valid_from: float
) -> Rewards:
    """Return the values of a part, with nan where a rollout is not compared in it."""
    if form != "conditioned" or part.name not in ADVERSITY:
        return part.values
    (validity,) = [each.values for each in parts if each.name == VALIDITY]
    return np.where(validity >= valid_from - _ROUNDING, part.values, np.nan)
