"""Two-player games in normal form: payoffs, best responses, exploitability. Pure.

Both players choose once and at the same time. Rows are the coder's choices (N), columns the tester's (M). A strategy is
a vector of probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from codea1_env.errors import UserError

Vector = NDArray[np.float64]

TIE = 1e-9
"""Payoffs that differ by less are equal."""


@dataclass(frozen=True, slots=True, eq=False)
class MatrixGame:
    """Payoffs of two players."""

    row: NDArray[np.float64]
    """(N, M) payoffs of the row player, the coder."""
    column: NDArray[np.float64]
    """(N, M) payoffs of the column player, the tester."""

    def __post_init__(self) -> None:
        if self.row.ndim != 2 or self.row.shape != self.column.shape or not self.row.size:
            raise UserError(f"payoffs must have one shape (N, M), got {self.row.shape} and {self.column.shape}")
        if not (np.isfinite(self.row).all() and np.isfinite(self.column).all()):
            raise UserError("payoffs must be finite numbers: a game cannot hold masked rounds")

    @classmethod
    def of(cls, row: ArrayLike, column: ArrayLike | None = None) -> MatrixGame:
        """Return the game with these payoffs; a zero-sum game if `column` is None."""
        first = np.array(row, dtype=np.float64)
        return cls(first, -first if column is None else np.array(column, dtype=np.float64))

    @property
    def shape(self) -> tuple[int, int]:
        """(N, M)"""
        m, n = self.row.shape
        return m, n

    @property
    def is_constant_sum(self) -> bool:
        """Whether the payoffs of both players add up to a constant; then all equilibria have the same value."""
        total = self.row + self.column
        return bool(np.ptp(total) <= TIE * max(1.0, float(np.abs(total).max())))


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """One strategy of each player."""

    row: Vector
    """(N,)"""
    column: Vector
    """(M,)"""

    @classmethod
    def uniform(cls, shape: tuple[int, int]) -> Profile:
        """Return the profile of two uniform strategies."""
        return cls(np.full(shape[0], 1 / shape[0]), np.full(shape[1], 1 / shape[1]))


def values(game: MatrixGame, profile: Profile) -> Vector:
    """Return (2,) the expected payoffs of row and column player."""
    return np.array([profile.row @ game.row @ profile.column, profile.row @ game.column @ profile.column])


def regrets(game: MatrixGame, profile: Profile) -> Vector:
    """Return (2,) what each player would gain by a best response, at least 0."""
    best = np.array([(game.row @ profile.column).max(), (profile.row @ game.column).max()])
    gaps: Vector = np.maximum(best - values(game, profile), 0.0)
    return gaps


def nash_conv(game: MatrixGame, profile: Profile) -> float:
    """Return the sum of both regrets, which is 0 exactly at Nash equilibria.

    Source: Lanctot et al., A Unified Game-Theoretic Approach to Multiagent RL (2017), section 3.3.
    """
    return float(regrets(game, profile).sum())


def best_responses(payoffs: Vector, *, tolerance: float = TIE) -> NDArray[np.intp]:
    """Return the positions of the choices with the highest payoff.

    Args:
        payoffs: (A,) expected payoff of each choice, e.g. `game.row @ profile.column`.
        tolerance: payoffs this close to the highest count as equal to it.
    """
    best: NDArray[np.intp] = np.flatnonzero(payoffs >= payoffs.max() - tolerance)
    return best
