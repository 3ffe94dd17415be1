"""Alpha-rank: which pairs of choices an evolving pair of populations visits in the long run. Pure.

Each population plays one choice at a time. Now and then one mutant appears, spreads with a probability that grows with
what it gains, and the pair of populations moves on. The share of time spent at each pair ranks the choices; unlike a
Nash equilibrium there is always exactly one answer, cycles included.

Source: Omidshafiei et al., alpha-Rank: Multi-Agent Evaluation by Evolution (2019), equations 3 to 8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from codea1_agents.study.matrix_game import MatrixGame, Vector
from codea1_env.errors import UserError

_TIE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class AlphaRank:
    """The long run."""

    pairs: NDArray[np.float64]
    """(M, N) share of time at each pair of choices; adds up to 1."""
    row: Vector
    """(M,) share of time at each row."""
    column: Vector
    """(N,)"""


def alpha_rank(
    game: MatrixGame, *, intensity: float = math.inf, population: int = 50, mutation: float = 0.01
) -> AlphaRank:
    """Return the stationary distribution of the process.

    Args:
        game: payoffs.
        intensity: of selection, the method's alpha, at least 0; infinite: every gain spreads, no loss does but by a
            mutation.
        population: individuals in each population, at least 2 (finite intensity only).
        mutation: with infinite intensity, the probability with which a loss spreads, in (0, 0.5).

    Raises:
        UserError: a number out of range.
    """
    if not intensity >= 0 or population < 2 or not 0 < mutation < 0.5:
        raise UserError(f"alpha-rank: intensity {intensity}, population {population}, mutation {mutation} out of range")
    m, n = game.shape

    def spreads(gain: NDArray[np.float64]) -> NDArray[np.float64]:
        if math.isinf(intensity):
            sure = np.where(gain > _TIE, 1 - mutation, mutation)
            return np.where(np.abs(gain) <= _TIE, 0.5, sure)
        return _fixation(intensity * gain, population)

    by_rows = spreads(game.row.T[:, None, :] - game.row.T[:, :, None])  # (N, M from, M to)
    by_columns = spreads(game.column[:, None, :] - game.column[:, :, None])  # (M, N from, N to)
    chain = np.zeros((m, n, m, n))
    rows, columns = np.arange(m), np.arange(n)
    for j in columns:
        chain[:, j, :, j] += by_rows[j]
    for i in rows:
        chain[i, :, i, :] += by_columns[i]
    flat = chain.reshape(m * n, m * n) / max(1, m + n - 2)
    np.fill_diagonal(flat, 0.0)
    pairs = _stationary(flat).reshape(m, n)
    return AlphaRank(pairs, pairs.sum(axis=1), pairs.sum(axis=0))


def _fixation(gain: NDArray[np.float64], population: int) -> NDArray[np.float64]:
    """Return the chance that one mutant takes over: (1 - exp(-g)) / (1 - exp(-population g)), 1 / population at 0.

    Written so that no gain overflows. Chances are at least 1e-100, so that the chain stays connected.
    """
    size = np.maximum(np.abs(gain), 1e-12)
    up = -np.expm1(-size) / -np.expm1(-population * size)
    down = up * np.exp(-(population - 1) * size)
    chances: NDArray[np.float64] = np.maximum(np.where(gain >= 0, up, down), 1e-100)
    return chances


def _stationary(chain: NDArray[np.float64]) -> Vector:
    """Return the stationary distribution of a connected chain, given its moves (the diagonal is not read).

    Source: Grassmann, Taksar and Heyman (1985). Nothing is subtracted, so that tiny probabilities keep their digits.
    """
    work = chain.copy()
    size = len(work)
    for k in range(size - 1, 0, -1):
        work[:k, k] /= work[k, :k].sum()
        work[:k, :k] += np.outer(work[:k, k], work[k, :k])
    shares = np.zeros(size)
    shares[0] = 1.0
    for k in range(1, size):
        shares[k] = shares[:k] @ work[:k, k]
        shares /= shares.max()  # one factor may be 1e100
    found: Vector = shares / shares.sum()
    return found
