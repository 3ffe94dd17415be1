"""Bootstrap over problems for figures that are not one mean: products of means, such as Mul."""

from __future__ import annotations

from math import isnan, nan

import numpy as np
from numpy.typing import NDArray

from codea1_agents.statistics import Estimate


def product_interval(
    first: dict[str, float],
    second: dict[str, float],
    *,
    confidence: float = 0.95,
    n_resamples: int = 2000,
    seed: int = 0,
) -> Estimate:
    """Return the product of two means over problems with its percentile interval; one draw of problems gives both.

    Method: as `codea1_agents.statistics.mean_interval`. Draws in which one of the means has no value are left out.

    Args:
        first: problem -> value; nan means that the problem does not enter this mean.
        second: likewise, of the same problems.
        confidence: in (0, 1).
        n_resamples: at least 1.
        seed: of the resampling.

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
        draws = np.random.default_rng(seed).integers(0, len(pairs), size=(n_resamples, len(pairs)))
        products = _products(pairs[draws])
        tail = 50 * (1 - confidence)
        low, high = map(float, np.percentile(products[~np.isnan(products)], [tail, 100 - tail]))
    return Estimate(value, low, high, n, len(pairs), 0)


def _products(pairs: NDArray[np.float64]) -> NDArray[np.float64]:
    """(R, P, 2) -> (R,); nan where a column holds nothing."""
    known = ~np.isnan(pairs)
    counts = known.sum(axis=1)
    sums = np.where(known, pairs, 0.0).sum(axis=1)
    means = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    product: NDArray[np.float64] = means[:, 0] * means[:, 1]
    return product
