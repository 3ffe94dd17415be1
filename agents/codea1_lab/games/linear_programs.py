"""Strategies by linear programming: the maximin strategy, and an equilibrium on a given support."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from codea1_env.errors import extra_needed
from codea1_lab.games.matrix_game import MatrixGame, Profile, Vector

_EXACTLY = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
_ZERO = 1e-8


def maximin(payoffs: NDArray[np.float64]) -> Vector:
    """Return (A,) the strategy with the highest worst-case payoff.

    Args:
        payoffs: (A, B) the player's payoffs; rows are its own choices.

    Raises:
        MissingExtra: scipy is not installed.
    """
    n_own, n_other = payoffs.shape
    everything = np.arange(n_own)
    strategy = _probabilities(payoffs.T, everything, np.arange(0), np.arange(n_other), maximise=True)
    assert strategy is not None  # a maximin strategy always exists
    return strategy


def supported_profile(game: MatrixGame, rows: NDArray[Any], columns: NDArray[Any]) -> Profile | None:
    """Return an equilibrium whose support lies in the given rows and columns, all of which are best responses; or None.

    Raises:
        MissingExtra: scipy is not installed.
    """
    m, n = game.shape
    others_of_rows, others_of_columns = np.setdiff1d(np.arange(m), rows), np.setdiff1d(np.arange(n), columns)
    column = _probabilities(game.row, columns, rows, others_of_rows)
    row = _probabilities(game.column.T, rows, columns, others_of_columns)
    return None if row is None or column is None else Profile(row, column)


def _probabilities(
    payoffs: NDArray[np.float64],
    support: NDArray[Any],
    equal: NDArray[Any],
    below: NDArray[Any],
    *,
    maximise: bool = False,
) -> Vector | None:
    """Return a strategy z on `support` and for some v: `payoffs[equal] @ z == v`, `payoffs[below] @ z <= v`; or None.

    With `maximise` the inequality is `payoffs[below] @ z >= v` and v is maximal, as for a maximin strategy.
    """
    with extra_needed("solving a game", "study"):
        from scipy.optimize import linprog  # noqa: PLC0415  slow to import, and optional
    used = payoffs[:, support]
    sign = -1.0 if maximise else 1.0
    n = len(support)
    solution = linprog(
        c=np.append(np.zeros(n), sign),
        A_ub=np.hstack([sign * used[below], np.full((len(below), 1), -sign)]) if len(below) else None,
        b_ub=np.zeros(len(below)) if len(below) else None,
        A_eq=np.vstack([np.append(np.ones(n), 0.0), np.hstack([used[equal], np.full((len(equal), 1), -1.0)])]),
        b_eq=np.append(1.0, np.zeros(len(equal))),
        bounds=[(0, 1)] * n + [(None, None)],
        method="highs-ds",
        options=_EXACTLY,
    )
    if solution.x is None:
        return None
    strategy = np.zeros(payoffs.shape[1])
    strategy[support] = _exact_vertex(used, equal, below, solution.x)
    return strategy


def _exact_vertex(
    used: NDArray[np.float64], equal: NDArray[Any], below: NDArray[Any], solution: NDArray[np.float64]
) -> Vector:
    """Solve the binding equations of the solver's vertex again, since the solver has errors of about 1e-9."""
    z, bound = solution[:-1], solution[-1]
    free = np.flatnonzero(z > _ZERO)
    tight = below[np.abs(used[below] @ z - bound) < _ZERO]
    binding = np.concatenate([equal, tight]).astype(int)
    equations = np.vstack(
        [np.append(np.ones(len(free)), 0.0), np.hstack([used[np.ix_(binding, free)], -np.ones((len(binding), 1))])]
    )
    exact = np.linalg.lstsq(equations, np.append(1.0, np.zeros(len(binding))), rcond=None)[0][:-1]
    vertex = np.zeros(len(z))
    vertex[free] = np.maximum(exact if np.abs(exact - z[free]).max() < 1e-6 else z[free], 0.0)
    strategy: Vector = vertex / vertex.sum()
    return strategy
