"""Alpha-rank: which pairs of choices two evolving populations play in the long run. Pure.

All members of a population play the same choice. From time to time a mutant with another choice appears. The better it
earns, the more likely it takes over its population. The share of time that the process spends at each pair of choices
ranks the choices. This distribution always exists and is unique, even where best responses cycle; Nash equilibria may
be several.

Source: Omidshafiei et al., alpha-Rank: Multi-Agent Evaluation by Evolution (2019), equations 3 to 8.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from codea1_env.errors import UserError
from codea1_lab.games.matrix_game import TIE, MatrixGame, Vector


@dataclass(frozen=True, slots=True, eq=False)
class AlphaRank:
    """The stationary distribution of the process."""

    pairs: NDArray[np.float64]
    """(N, M) share of time at each pair of choices; the shares add up to 1."""
    row: Vector
    """(N,) share of time at each row."""
    column: Vector
    """(M,) share of time at each column."""


def alpha_rank(game: MatrixGame, *, mutation: float = 0.01) -> AlphaRank:
    """Return the stationary distribution under infinitely strong selection.

    A mutant takes over with probability `1 - mutation` if it earns more, 0.5 if it earns the same, and `mutation` if it
    earns less.

    Args:
        game: payoffs.
        mutation: in (0, 0.5).

    Raises:
        UserError: `mutation` is out of range.
    """
    if not 0 < mutation < 0.5:
        raise UserError(f"alpha-rank: mutation must be in (0, 0.5), got {mutation}")
    m, n = game.shape

    def takes_over(gain: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(np.abs(gain) <= TIE, 0.5, np.where(gain > TIE, 1 - mutation, mutation))

    by_rows = takes_over(game.row.T[:, None, :] - game.row.T[:, :, None])  # (M, N from, N to)
    by_columns = takes_over(game.column[:, None, :] - game.column[:, :, None])  # (N, M from, M to)
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


def _stationary(chain: NDArray[np.float64]) -> Vector:
    """Return the stationary distribution of a connected Markov chain; the diagonal of `chain` is not read.

    Source: Grassmann, Taksar and Heyman (1985). Their method subtracts nothing, so small probabilities stay exact.
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
        shares /= shares.max()
    found: Vector = shares / shares.sum()
    return found
