"""The bootstrap over problems for what is computed from all pairs at once: ratings, cycles, equilibria. Pure.

One draw of problems gives all cells, so that what they have in common (hard problems) stays common.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
