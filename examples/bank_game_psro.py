"""Policy-space response oracles (PSRO): best responses extend a small game of policies until no player can improve.

A policy may be of any type. The game returns the payoffs of two policies and a best response to a mixture. At the end
the mixture over the policies is an equilibrium of the whole game, though the small game holds few of its policies.

Source: Lanctot et al., A Unified Game-Theoretic Approach to Multiagent Reinforcement Learning (2017), algorithm 1.

python examples/bank_game_psro.py 0 nash    # all problems, meta-solver
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from codea1_env.bank import load_bank
from codea1_env.errors import UnknownName
from codea1_lab.games.bank_game import BankGame
from codea1_lab.games.equilibria import solve
from codea1_lab.games.matrix_game import MatrixGame, Profile, Vector

Policy = TypeVar("Policy")


class Policies(Protocol[Policy]):
    """A game that computes payoffs and best responses of policies."""

    def first(self) -> tuple[Policy, Policy]:
        """Return the initial policies of the row and the column player."""

    def payoffs(self, row: Policy, column: Policy) -> Vector:
        """Return (2,) the expected payoffs of row and column player."""

    def best_row(self, columns: list[Policy], weights: Vector) -> Policy:
        """Return a best response to a mixture of the column player's policies."""

    def best_column(self, rows: list[Policy], weights: Vector) -> Policy:
        """Return a best response to a mixture of the row player's policies."""


@dataclass(frozen=True, slots=True, eq=False)
class PsroResult(Generic[Policy]):
    """The small game at the end."""

    rows: tuple[Policy, ...]
    columns: tuple[Policy, ...]
    game: MatrixGame
    """Payoffs of all pairs of `rows` and `columns`."""
    profile: Profile
    """The last mixtures over `rows` and `columns`."""
    nash_conv: tuple[float, ...]
    """Per iteration, NashConv of the mixtures in the whole game."""


META_SOLVERS: dict[str, Callable[[MatrixGame], Profile]] = {
    "nash": lambda game: solve(game).profile,
    "uniform": lambda game: Profile.uniform(game.shape),
}


def psro(
    policies: Policies[Policy], *, meta_solver: str = "nash", most_iterations: int = 200, tolerance: float = 1e-9
) -> PsroResult[Policy]:
    """Run PSRO.

    Args:
        policies: the game.
        meta_solver: one of `META_SOLVERS`; with `nash` the result is an equilibrium if it stops before the last
            iteration.
        most_iterations: at least 1.
        tolerance: NashConv at which it stops.

    Raises:
        UnknownName: no such solver.
    """
    if meta_solver not in META_SOLVERS:
        raise UnknownName.of("meta-solver", meta_solver, META_SOLVERS)
    row, column = policies.first()
    rows, columns, gaps = [row], [column], list[float]()
    table = np.array([[policies.payoffs(row, column)]])  # (rows, columns, 2)
    for _ in range(max(1, most_iterations)):
        game = MatrixGame(table[..., 0].copy(), table[..., 1].copy())
        profile = META_SOLVERS[meta_solver](game)
        new_row = policies.best_row(columns, profile.column)
        new_column = policies.best_column(rows, profile.row)
        of_row = np.array([policies.payoffs(new_row, each) for each in columns])
        of_column = np.array([policies.payoffs(each, new_column) for each in rows])
        now = profile.row @ table.transpose(2, 0, 1) @ profile.column
        gaps.append(
            float(max(profile.column @ of_row[:, 0] - now[0], 0) + max(profile.row @ of_column[:, 1] - now[1], 0))
        )
        if gaps[-1] <= tolerance:
            break
        corner = policies.payoffs(new_row, new_column)
        table = np.concatenate([table, of_row[None, :, :]], axis=0)
        table = np.concatenate([table, np.concatenate([of_column, corner[None, :]])[:, None, :]], axis=1)
        rows.append(new_row)
        columns.append(new_column)
    n_rows, n_columns = game.shape
    return PsroResult(tuple(rows[:n_rows]), tuple(columns[:n_columns]), game, profile, tuple(gaps))


class BankPolicies:
    """Pure policies of the bank game: (P,) integers, one choice per problem."""

    def __init__(self, game: BankGame) -> None:
        self._row = np.array([each.row for each in game.games])
        self._column = np.array([each.column for each in game.games])
        self._problems = np.arange(len(game.games))

    def first(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the policies that always choose the first entry."""
        return np.zeros(len(self._problems), np.intp), np.zeros(len(self._problems), np.intp)

    def payoffs(self, row: NDArray[np.intp], column: NDArray[np.intp]) -> Vector:
        """Return (2,) means over problems."""
        cells = (self._problems, row, column)
        return np.array([self._row[cells].mean(), self._column[cells].mean()])

    def best_row(self, columns: list[NDArray[np.intp]], weights: Vector) -> NDArray[np.intp]:
        """Return the best program for each problem."""
        payoffs = sum(w * self._row[self._problems, :, column] for w, column in zip(weights, columns, strict=True))
        best: NDArray[np.intp] = np.asarray(payoffs).argmax(axis=1)
        return best

    def best_column(self, rows: list[NDArray[np.intp]], weights: Vector) -> NDArray[np.intp]:
        """Return the best suite for each problem."""
        payoffs = sum(w * self._column[self._problems, row, :] for w, row in zip(weights, rows, strict=True))
        best: NDArray[np.intp] = np.asarray(payoffs).argmax(axis=1)
        return best


def main() -> None:
    n_problems, meta_solver = (int(sys.argv[1]), sys.argv[2]) if len(sys.argv) > 2 else (2, "nash")
    game = BankGame.of(load_bank("starter", limit=n_problems or None).payoffs())
    found = psro(BankPolicies(game), meta_solver=meta_solver)
    print("iteration  NashConv")
    for iteration, gap in enumerate(found.nash_conv, start=1):
        print(f"{iteration:9}  {gap:8.5f}")
    print(f"{len(found.rows)} coders and {len(found.columns)} testers")


if __name__ == "__main__":
    main()
