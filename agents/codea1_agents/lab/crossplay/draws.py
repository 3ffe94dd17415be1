"""The bootstrap over problems for what is computed from all pairs at once: ratings, cycles, equilibria. Pure.

One draw of problems gives all cells, so that what they have in common (hard problems) stays common.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from codea1_agents.statistics import Estimate

Table = NDArray[np.float64]


def problem_weights(n_problems: int, n_draws: int, seed: int) -> Table:
    """Return (1 + R, P) how often each problem is in a draw; the first row is the problems as they are."""
    generator = np.random.default_rng(seed)
    drawn = generator.integers(0, n_problems, size=(n_draws, n_problems))
    weights = np.zeros((1 + n_draws, n_problems))
    weights[0] = 1.0
    np.add.at(weights, (np.arange(1, 1 + n_draws)[:, None], drawn), 1.0)
    return weights


def drawn_counts(table: Table, weights: Table) -> Table:
    """Return (R, C, T) of how many problems a cell has a value in each draw.

    Args:
        table: (C, T, P); nan is no value.
        weights: (R, P)
    """
    counts: Table = np.einsum("ctp,rp->rct", (~np.isnan(table)).astype(np.float64), weights)
    return counts


def means_of(table: Table, weights: Table) -> Table:
    """Return (R, C, T) means over problems in each draw; nan where no problem has a value."""
    counts = drawn_counts(table, weights)
    sums = np.einsum("ctp,rp->rct", np.nan_to_num(table, nan=0.0), weights)
    means: Table = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    return means


def central(values: Table, *, confidence: float = 0.95) -> tuple[Table, Table]:
    """Return the ends of the central share of draws along the first axis; nan where fewer than two are known."""
    known = np.count_nonzero(~np.isnan(values), axis=0)
    tail = 50 * (1 - confidence)
    filled = np.where(known > 1, values, 0.0)  # or numpy would warn of what holds nothing
    low, high = np.nanpercentile(filled, [tail, 100 - tail], axis=0)
    return np.where(known > 1, low, np.nan), np.where(known > 1, high, np.nan)


def estimates(values: Table, n: Sequence[int], n_problems: int) -> tuple[Estimate, ...]:
    """Return each column's value and its interval; none with fewer than two problems or draws.

    Args:
        values: (1 + R, K), the first row of all problems, the others of the draws.
        n: (K,) how many games each is of.
        n_problems: that were drawn from.
    """
    has_interval = len(values) > 2 and n_problems > 1
    low, high = central(values[1:]) if has_interval else (np.full(values.shape[1], np.nan),) * 2
    columns = zip(values[0], low, high, n, strict=True)
    return tuple(Estimate(float(v), float(a), float(b), int(k), n_problems, 0) for v, a, b, k in columns)
