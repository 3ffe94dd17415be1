"""Means with bootstrap intervals over problems.

Method. The estimate is the mean over problems of each problem's own mean, so every problem has the same weight. Its
interval is the percentile bootstrap over problems: problems are drawn with replacement (as clusters, since the games of
one problem are similar), the mean is computed again, and the interval is the central share `confidence` of those means.
Below about 20 problems such an interval is too narrow; with fewer than two problems there is none. Masked values (nan)
are left out and counted.

Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13; Field and Welsh (2007) on clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import hypot, isfinite, isnan, nan, sqrt
from statistics import NormalDist, fmean, stdev

import numpy as np
from numpy.typing import NDArray

_N_RESAMPLES = 2000
TAIL = 50 * (1 - 0.95)
"""Percent on either side of an interval."""
WINDOW = 5
"""Steps that an interval over steps needs."""
INTERVAL_ENDS = ("_low", "_high")
"""What the names of an interval's ends have after the figure's, in `metrics.jsonl`."""
_ROUNDING = 1e-9
"""Two means of the same values can differ by so much."""
_MAX_CELLS = 2_000_000
"""Values drawn at a time, 8 bytes each; bounds the memory and does not change the interval."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and its interval; nan where there is none."""

    mean: float
    low: float
    high: float
    n: int
    """Number of values that entered."""
    n_problems: int
    """Number of their problems."""
    n_masked: int
    """Number of values left out because they are nan."""


def json_number(value: float) -> float | None:
    """Return the number; None for nan and inf, which JSON lacks."""
    return value if isfinite(value) else None


def estimate_document(estimate: Estimate) -> dict[str, float | int | None]:
    """Return the estimate's fields as plain data; nan becomes null."""
    return {each.name: json_number(getattr(estimate, each.name)) for each in fields(estimate)}


def known_mean(values: Iterable[float]) -> float:
    """Return the mean of the values that are not nan; nan if there are none."""
    known = [float(value) for value in values if not isnan(value)]
    return fmean(known) if known else nan


def mean_interval(
    values_by_problem: Mapping[str, Sequence[float]],
    *,
    n_resamples: int = _N_RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """Return the mean over problems with its bootstrap interval (the module's docstring describes the method).

    Args:
        values_by_problem: problem id -> one value per game; nan means masked.
        n_resamples: at least 1.
        seed: seeds the resampling; the same arguments give the same interval.
    """
    kept = {problem: [v for v in values if not isnan(v)] for problem, values in values_by_problem.items()}
    n_all = sum(len(values) for values in values_by_problem.values())
    n = sum(len(values) for values in kept.values())
    # Sorted, so that the interval does not depend on the order in which the games were played.
    means = np.array([np.mean(kept[problem]) for problem in sorted(kept) if kept[problem]], dtype=np.float64)
    mean = float(means.mean()) if len(means) else nan
    low = high = nan
    if len(means) > 1:
        low, high = _central(lambda drawn: means[drawn].mean(axis=1), len(means), n_resamples, seed)
    return Estimate(mean, low, high, n, len(means), n_all - n)


def steps_interval(values: Iterable[float]) -> Estimate:
    """Return the mean of a window of training steps with its 95 % interval (Student's t over steps, as if independent).

    Args:
        values: one per step; what is not finite is masked. There is no interval below `WINDOW` others.
    """
    drawn = list(values)
    known = [value for value in drawn if isfinite(value)]
    n, low, high = len(known), nan, nan
    mean = fmean(known) if known else nan
    if n >= WINDOW:
        half = _t_quantile(n - 1) * stdev(known) / sqrt(n)
        low, high = mean - half, mean + half
    return Estimate(mean, low, high, n, n, len(drawn) - n)


def _t_quantile(freedom: int) -> float:
    """Return the quantile of Student's t that an interval needs, within 0.01 from 4 degrees of freedom on.

    Source: Abramowitz and Stegun (1964), 26.7.5; scipy is an extra.
    """
    z = NormalDist().inv_cdf(1 - TAIL / 100)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    return z + (z**3 + z) / (4 * freedom) + second + third


def direction(change: Estimate) -> str:
    """Return whether a figure `rose`, `fell`, `did not change` or `shows no clear change,`; empty: no interval."""
    if not any(abs(value) > _ROUNDING for value in (change.mean, change.low, change.high)):
        return "did not change"
    if isnan(change.low) or isnan(change.high):
        return ""
    return "rose" if change.low > _ROUNDING else "fell" if change.high < -_ROUNDING else "shows no clear change,"


def change_between(before: Estimate, after: Estimate) -> Estimate:
    """Return the difference of two means from their intervals (Zou and Donner, 2008), as if they were independent."""
    difference = after.mean - before.mean
    low = difference - hypot(after.mean - after.low, before.high - before.mean)
    high = difference + hypot(after.high - after.mean, before.mean - before.low)
    return Estimate(difference, low, high, after.n, after.n_problems, 0)


def recorded_estimate(figures: Mapping[str, float], name: str) -> Estimate:
    """Return a held-out figure of `metrics.jsonl` with its interval; nan where they are not recorded."""
    mean, low, high = (figures.get(f"{name}{end}", nan) for end in ("", *INTERVAL_ENDS))
    n = int(min(figures.get("problems", 1), 1 << 53))
    return Estimate(mean, low, high, n, n, 0)


def difference_interval(
    before: Mapping[str, Sequence[float]], after: Mapping[str, Sequence[float]], *, seed: int = 0
) -> Estimate:
    """Return the mean of `after - before`, game by game, with its paired interval.

    Raises:
        ValueError: the two do not have the same games.
    """
    if {problem: len(values) for problem, values in before.items()} != {p: len(v) for p, v in after.items()}:
        raise ValueError("both scorings must cover the same games")
    differences = {
        problem: [b - a for a, b in zip(values, after[problem], strict=True)] for problem, values in before.items()
    }
    return mean_interval(differences, seed=seed)


def product_interval(first: Mapping[str, float], second: Mapping[str, float], *, seed: int = 0) -> Estimate:
    """Return the product of two means over problems, such as Mul; each bootstrap draw gives both means.

    Draws in which one of the means is undefined are left out.

    Args:
        first: problem -> value; nan means that the problem does not enter this mean.
        second: likewise, of the same problems.
        seed: seeds the resampling.

    Raises:
        ValueError: the problems differ.
    """
    if first.keys() != second.keys():
        raise ValueError("both figures must be of the same problems")
    pairs = np.array([(first[problem], second[problem]) for problem in sorted(first)], dtype=np.float64).reshape(-1, 2)
    n = int(np.count_nonzero(~np.isnan(pairs).any(axis=1)))
    value = float(_products(pairs[None])[0])
    low = high = nan
    if len(pairs) > 1 and not isnan(value):
        low, high = _central(lambda drawn: _products(pairs[drawn]), len(pairs), _N_RESAMPLES, seed)
    return Estimate(value, low, high, n, len(pairs), 0)


def _central(
    figure: Callable[[NDArray[np.intp]], NDArray[np.float64]],
    n_problems: int,
    n_resamples: int,
    seed: int,
) -> tuple[float, float]:
    """Return the ends of the central share of `figure`, (R, P) -> (R,), over R draws of P problems; nan is left out."""
    generator = np.random.default_rng(seed)
    rows = max(1, _MAX_CELLS // n_problems)
    chunks = []
    for start in range(0, n_resamples, rows):
        shape = (min(rows, n_resamples - start), n_problems)
        chunks.append(figure(generator.integers(0, n_problems, size=shape)))
    drawn = np.concatenate(chunks)
    low, high = np.percentile(drawn[~np.isnan(drawn)], [TAIL, 100 - TAIL])
    return float(low), float(high)


def _products(pairs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the products of the two column means, (R, P, 2) -> (R,); nan where a column has only nan."""
    known = ~np.isnan(pairs)
    counts = known.sum(axis=1)
    sums = np.where(known, pairs, 0.0).sum(axis=1)
    means = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    product: NDArray[np.float64] = means[:, 0] * means[:, 1]
    return product
