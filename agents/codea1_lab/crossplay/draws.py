"""The bootstrap over problems for results of all pairs together: ratings, cycles, equilibria. Pure.

Each draw of problems is used for all cells, so that cells stay correlated through hard and easy problems.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from codea1_agents.statistics import TAIL, Estimate

Table = NDArray[np.float64]


def problem_weights(n_problems: int, n_draws: int, seed: int) -> Table:
    """Return (1 + R, P) how often each draw holds each problem; row 0 is not a draw and holds each problem once."""
    generator = np.random.default_rng(seed)
    draws = generator.integers(0, n_problems, size=(n_draws, n_problems))
    weights = np.zeros((1 + n_draws, n_problems))
    weights[0] = 1.0
    np.add.at(weights, (np.arange(1, 1 + n_draws)[:, None], draws), 1.0)
    return weights


def drawn_counts(table: Table, weights: Table) -> Table:
    """Return (R, C, T) the number of problems with a value, per draw and cell.

    Args:
        table: (C, T, P); nan is not a value.
        weights: (R, P) how often each draw holds each problem.
    """
    counts: Table = np.einsum("ctp,rp->rct", (~np.isnan(table)).astype(np.float64), weights)
    return counts


def means_of(table: Table, weights: Table) -> Table:
    """Return (R, C, T) means over the problems of each draw; nan if no problem has a value."""
    counts = drawn_counts(table, weights)
    sums = np.einsum("ctp,rp->rct", np.nan_to_num(table, nan=0.0), weights)
    means: Table = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    return means


def central(values: Table) -> tuple[Table, Table]:
    """Return both ends of the 95 % interval of the draws along axis 0; nan if fewer than two draws are not nan."""
    known = np.count_nonzero(~np.isnan(values), axis=0)
    filled = np.where(known > 1, values, 0.0)  # numpy warns of columns that are all nan
    low, high = np.nanpercentile(filled, [TAIL, 100 - TAIL], axis=0)
    return np.where(known > 1, low, np.nan), np.where(known > 1, high, np.nan)


def estimates(values: Table, n: Sequence[int], n_problems: int) -> tuple[Estimate, ...]:
    """Return each column's value and interval; the interval is nan with fewer than two problems or draws.

    Args:
        values: (1 + R, K); row 0 is for all problems, each other row for one draw.
        n: (K,) number of games of each value.
        n_problems: number of problems to draw from.
    """
    has_interval = len(values) > 2 and n_problems > 1
    low, high = central(values[1:]) if has_interval else (np.full(values.shape[1], np.nan),) * 2
    columns = zip(values[0], low, high, n, strict=True)
    return tuple(Estimate(float(v), float(a), float(b), int(k), n_problems, 0) for v, a, b, k in columns)
