"""The Lemke-Howson algorithm in exact arithmetic, which also solves degenerate games.

Theory of operation. Two tableaus of integers describe the best-response polytopes. Each pivot replaces the duplicate
label, until no label is missing; the strategies are then an equilibrium. Games with equal rows or columns are
degenerate: rows tie in the ratio test, and with floats the algorithm can cycle or stop at a wrong result. Here the
lexicographic rule breaks ties and nothing is rounded, so the algorithm always stops at an equilibrium.

Floats are rationals: the payoffs are scaled by a power of two to integers. The pivots are fraction-free (Edmonds,
Bareiss): all entries share one denominator, so no fraction has to be reduced.

Source: von Stengel, Computing Equilibria for Two-Person Games, Handbook of Game Theory 3 (2002), sections 2.3 and 2.6.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codea1_lab.games.matrix_game import MatrixGame, Profile

Integers = NDArray[Any]
"""An array of Python integers, which do not overflow."""


def lemke_howson(game: MatrixGame, *, dropped: int = 0, most_pivots: int = 10_000) -> Profile | None:
    """Return an equilibrium; None if `most_pivots` pivots do not suffice.

    Args:
        game: any.
        dropped: the label to drop first, in [0, N + M). Different labels may lead to different equilibria.
        most_pivots: a bound, since some games have exponentially long paths.

    Raises:
        ValueError: the label is out of range.
    """
    m, n = game.shape
    if not 0 <= dropped < m + n:
        raise ValueError(f"label must be in [0, {m + n}), got {dropped}")
    # Labels 0..m-1 are the rows, m..m+n-1 the columns. In the row player's polytope the labels of rows are variables
    # and those of columns are slacks; in the column player's polytope the labels of columns are the variables.
    row = _Tableau(_positive(game.column).T, range(m), range(m, m + n))
    column = _Tableau(_positive(game.row), range(m, m + n), range(m))
    entering, tableau = dropped, row if dropped < m else column
    for _ in range(most_pivots):
        leaving = tableau.pivot(entering)
        if leaving == dropped:
            return Profile(row.strategy(range(m)), column.strategy(range(m, m + n)))
        entering, tableau = leaving, column if tableau is row else row
    return None


class _Tableau:
    """One polytope `{z >= 0, A z <= 1}` as basic rows over all m + n labels, then the right-hand side."""

    def __init__(self, payoffs: Integers, variables: range, slacks: range) -> None:
        """Put all slacks into the basis: the artificial equilibrium, in which all probabilities are 0."""
        k, size = len(slacks), len(variables) + len(slacks)
        table: Integers = np.zeros((k, size + 1), dtype=object)
        table[:, list(variables)] = payoffs
        for position, slack in enumerate(slacks):
            table[position, slack] = 1
        table[:, -1] = 1
        self._table, self._basis, self._slacks = table, list(slacks), list(slacks)
        self._denominator = 1

    def pivot(self, entering: int) -> int:
        """Bring a label into the basis and return the label that leaves it."""
        table = self._table
        leaving_row = self._least_ratio(entering)
        pivot = table[leaving_row, entering]
        kept = table[leaving_row].copy()
        factors = table[:, entering].copy()
        table = (table * pivot - np.outer(factors, kept)) // self._denominator
        table[leaving_row] = kept
        self._table, self._denominator = table, pivot
        leaving, self._basis[leaving_row] = self._basis[leaving_row], entering
        return leaving

    def _least_ratio(self, entering: int) -> int:
        """Return the row with the lexicographically smallest ratio; it exists, since the polytope is bounded."""
        column = self._table[:, entering]
        rows = [i for i in range(len(column)) if column[i] > 0]
        for compared in (-1, *self._slacks):
            ratios = [Fraction(self._table[i, compared], column[i]) for i in rows]
            least = min(ratios)
            rows = [i for i, ratio in zip(rows, ratios, strict=True) if ratio == least]
            if len(rows) == 1:
                break
        return rows[0]

    def strategy(self, labels: range) -> NDArray[np.float64]:
        """Return the probabilities of the labels: their values divided by their sum."""
        exact = {label: self._table[i, -1] for i, label in enumerate(self._basis)}
        weights = [exact.get(label, 0) for label in labels]
        total = sum(weights)
        return np.array([float(Fraction(weight, total)) for weight in weights])


def _positive(payoffs: NDArray[np.float64]) -> Integers:
    """Return positive integer payoffs, scaled and shifted; the equilibria stay the same."""
    fractions = [[Fraction(float(value)) for value in line] for line in payoffs]
    scale = max(fraction.denominator for line in fractions for fraction in line)  # all are powers of two
    integers = np.array([[int(fraction * scale) for fraction in line] for line in fractions], dtype=object)
    positive: Integers = integers - integers.min() + scale
    return positive
