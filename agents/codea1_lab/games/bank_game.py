"""A bank as one game over all its problems: equilibria and exploitability, with and without sight of the program. Pure.

Problems are independent of each other. So each problem has its own equilibrium, and regrets are means over problems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from codea1_env.bank import BankPayoffs
from codea1_lab.games.equilibria import Equilibrium, solve
from codea1_lab.games.matrix_game import TIE, MatrixGame, Profile, Vector, nash_conv


@dataclass(frozen=True, slots=True, eq=False)
class WhiteBoxSolution:
    """One problem when the tester sees the program: the tester plays a best response, and the coder expects that."""

    coder: Vector
    """(N,) uniform over the programs that then earn most."""
    tester: NDArray[np.float64]
    """(N, M) uniform over the best responses to each program."""
    values: Vector
    """(2,) expected rewards of coder and tester."""


@dataclass(frozen=True, slots=True, eq=False)
class BankGame:
    """P matrix games. One of them is drawn uniformly and shown to both players."""

    games: tuple[MatrixGame, ...]
    """(P,) all of the same shape (N, M)."""

    @classmethod
    def of(cls, payoffs: BankPayoffs) -> BankGame:
        """Return the game with a bank's payoffs."""
        return cls(tuple(MatrixGame(*tables) for tables in zip(payoffs.coder, payoffs.tester, strict=True)))

    def solve(self) -> tuple[Equilibrium, ...]:
        """Return (P,) one equilibrium per problem, for a tester that does not see the program."""
        return tuple(solve(game) for game in self.games)

    def solve_white_box(self) -> tuple[WhiteBoxSolution, ...]:
        """Return (P,) the solutions by backward induction, for a tester that sees the program."""
        return tuple(solve_white_box(game) for game in self.games)

    def values(self, coder: NDArray[np.float64], tester: NDArray[np.float64]) -> Vector:
        """Return (2,) the expected rewards of coder and tester, means over problems.

        Args:
            coder: (P, N) strategies.
            tester: (P, M) strategies; (P, N, M) if it sees the program.
        """
        pairs = [_values(*each) for each in zip(self.games, coder, tester, strict=True)]
        mean: Vector = np.mean(pairs, axis=0)
        return mean

    def nash_conv(self, coder: NDArray[np.float64], tester: NDArray[np.float64]) -> float:
        """Return the mean over problems of the sum of both players' regrets; the shapes are those of `values`."""
        gains = [
            nash_conv(game, Profile(x, y)) if y.ndim == 1 else _white_box_nash_conv(game, x, y)
            for game, x, y in zip(self.games, coder, tester, strict=True)
        ]
        return float(np.mean(gains))


def solve_white_box(game: MatrixGame) -> WhiteBoxSolution:
    """Return the subgame-perfect equilibrium that splits ties evenly."""
    best = game.column >= game.column.max(axis=1, keepdims=True) - TIE
    tester = best / best.sum(axis=1, keepdims=True)
    earned = (game.row * tester).sum(axis=1)
    best_programs = earned >= earned.max() - TIE
    coder = best_programs / best_programs.sum()
    return WhiteBoxSolution(coder, tester, _values(game, coder, tester))


def _values(game: MatrixGame, coder: Vector, tester: NDArray[np.float64]) -> Vector:
    weights = coder[:, None] * (tester if tester.ndim == 2 else tester[None, :])
    return np.array([(weights * game.row).sum(), (weights * game.column).sum()])


def _white_box_nash_conv(game: MatrixGame, coder: Vector, tester: NDArray[np.float64]) -> float:
    now = _values(game, coder, tester)
    best = np.array([(game.row * tester).sum(axis=1).max(), coder @ game.column.max(axis=1)])
    return float(np.maximum(best - now, 0.0).sum())


def strategies_of(equilibria: Sequence[Equilibrium]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the strategies of all problems, (P, N) and (P, M)."""
    rows = np.array([equilibrium.profile.row for equilibrium in equilibria])
    return rows, np.array([equilibrium.profile.column for equilibrium in equilibria])
