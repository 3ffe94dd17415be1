"""Means with bootstrap intervals over problems, and how two scorings of the same games order them.

Method. The estimate is the mean over problems of each problem's own mean, so that every problem weighs the same however
often it was played. Its interval is the percentile bootstrap over problems: problems are drawn with replacement
(clusters, since the games of one problem resemble each other), the mean is taken again, and the interval is the
central share `confidence` of those means. Below about 20 problems such an interval is too narrow; with fewer than two
there is none. Masked values (nan) are left out and counted.

Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13; Field and Welsh (2007) on clusters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan

import numpy as np
from numpy.typing import NDArray

_CELLS_PER_CHUNK = 2_000_000  # bounds the memory of the resampling to about 16 MB


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and its interval; nan where there is none."""

    mean: float
    low: float
    high: float
    n: int
    """Values that entered."""
    n_problems: int
    """Problems that they belong to."""
    n_masked: int
    """Values left out because they are nan."""


@dataclass(frozen=True, slots=True)
class OrderChange:
    """How often two scorings order the same games differently."""

    n_pairs: int
    """Pairs of games that at least one of the scorings tells apart."""
    n_reversed: int
    """Pairs that the scorings order in opposite ways."""
    n_merged: int
    """Pairs apart under the first scoring, tied under the second."""
    n_split: int
    """Pairs tied under the first scoring, apart under the second."""


def mean_interval(
    values_by_problem: Mapping[str, Sequence[float]],
    *,
    confidence: float = 0.95,
    n_resamples: int = 2000,
    seed: int = 0,
) -> Estimate:
    """Return the mean over problems with its bootstrap interval (see the module's text for the method).

    Args:
        values_by_problem: problem id -> one value per game; nan means masked.
        confidence: in (0, 1).
        n_resamples: at least 1.
        seed: of the resampling; the same arguments give the same interval.

    Raises:
        ValueError: confidence or n_resamples out of range.
    """
    if not 0 < confidence < 1 or n_resamples < 1:
        raise ValueError(f"confidence {confidence} or n_resamples {n_resamples} out of range")
    kept = {problem: [v for v in values if not isnan(v)] for problem, values in values_by_problem.items()}
    n_all = sum(len(values) for values in values_by_problem.values())
    n = sum(len(values) for values in kept.values())
    # Sorted, so that the interval does not depend on the order in which the games were played.
    means = np.array([np.mean(kept[problem]) for problem in sorted(kept) if kept[problem]], dtype=np.float64)
    mean = float(means.mean()) if len(means) else nan
    low, high = _percentiles(means, confidence, n_resamples, seed) if len(means) > 1 else (nan, nan)
    return Estimate(mean, low, high, n, len(means), n_all - n)


def difference_interval(
    before: Mapping[str, Sequence[float]],
    after: Mapping[str, Sequence[float]],
    *,
    confidence: float = 0.95,
    n_resamples: int = 2000,
    seed: int = 0,
) -> Estimate:
    """Return the mean of `after - before`, game by game, with its interval (paired, hence narrower than two apart).

    Raises:
        ValueError: the two do not hold the same games.
    """
    if {problem: len(values) for problem, values in before.items()} != {p: len(v) for p, v in after.items()}:
        raise ValueError("both scorings must hold the same games")
    differences = {
        problem: [b - a for a, b in zip(values, after[problem], strict=True)] for problem, values in before.items()
    }
    return mean_interval(differences, confidence=confidence, n_resamples=n_resamples, seed=seed)


def order_change(before: Sequence[float], after: Sequence[float], *, tolerance: float = 1e-9) -> OrderChange:
    """Compare the orders that two scorings give to the same games; masked games (nan in either) are left out.

    Args:
        before: (G,) one reward per game.
        after: (G,) the same games scored anew.
        tolerance: rewards closer than this count as tied.

    Raises:
        ValueError: lengths differ.
    """
    if len(before) != len(after):
        raise ValueError(f"{len(before)} games before, {len(after)} after")
    pairs = np.array([pair for pair in zip(before, after, strict=True) if not any(map(isnan, pair))]).reshape(-1, 2)
    n_pairs = n_reversed = n_merged = n_split = 0
    for i in range(len(pairs) - 1):  # a row at a time: G x G at once would not fit for long runs
        gaps = pairs[i + 1 :] - pairs[i]
        signs = np.where(np.abs(gaps) > tolerance, np.sign(gaps), 0.0)
        first, second = signs[:, 0], signs[:, 1]
        n_pairs += int(np.count_nonzero((first != 0) | (second != 0)))
        n_reversed += int(np.count_nonzero(first * second < 0))
        n_merged += int(np.count_nonzero((first != 0) & (second == 0)))
        n_split += int(np.count_nonzero((first == 0) & (second != 0)))
    return OrderChange(n_pairs, n_reversed, n_merged, n_split)


def _percentiles(means: NDArray[np.float64], confidence: float, n_resamples: int, seed: int) -> tuple[float, float]:
    generator = np.random.default_rng(seed)
    n_problems = len(means)
    rows = max(1, _CELLS_PER_CHUNK // n_problems)
    chunks = []
    for start in range(0, n_resamples, rows):
        shape = (min(rows, n_resamples - start), n_problems)
        chunks.append(means[generator.integers(0, n_problems, size=shape)].mean(axis=1))
    tail = 50 * (1 - confidence)
    low, high = np.percentile(np.concatenate(chunks), [tail, 100 - tail])
    return float(low), float(high)
