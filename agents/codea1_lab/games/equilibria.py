"""A Nash equilibrium of any matrix game, by the first method that finds one, with its residual regret.

`solve` first merges equal rows and equal columns, which games from banks often have. Then it tries in this order: a
pure equilibrium; for a constant-sum game, a linear program; the Lemke-Howson algorithm in exact arithmetic, from
several labels; regret matching, followed by a linear program on its support. Large games try regret matching before
Lemke-Howson, which would take too long. `solve` computes the residual regret of each result in the whole game and stops
when it is below the tolerance. It always returns the best result, so callers must check the residual.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from codea1_lab.games.lemke_howson import lemke_howson
from codea1_lab.games.linear_programs import maximin, supported_profile
from codea1_lab.games.matrix_game import MatrixGame, Profile, Vector, best_responses, nash_conv, values
from codea1_lab.games.regret_matching import regret_matching

TOLERANCE = 1e-9
_N_LABELS = 8
_EXACT_CELLS = 1_600  # exact arithmetic is too slow for larger games, so regret matching comes first
_POLISHED_STEPS = (1_000, 10_000, 100_000)
_SUPPORT = (1e-2, 1e-3, 1e-4)


@dataclass(frozen=True, slots=True, eq=False)
class Equilibrium:
    """A profile and how close it is to an equilibrium."""

    profile: Profile
    values: Vector
    """(2,) expected payoffs of row and column player."""
    method: str
    """`pure`, `linear program`, `Lemke-Howson` or `regret matching`."""
    residual: float
    """NashConv of the profile: 0 at an exact equilibrium, up to rounding."""

    @property
    def row_support(self) -> tuple[int, ...]:
        """Rows with a positive probability."""
        return tuple(int(i) for i in np.flatnonzero(self.profile.row > TOLERANCE))

    @property
    def column_support(self) -> tuple[int, ...]:
        """Columns with a positive probability."""
        return tuple(int(i) for i in np.flatnonzero(self.profile.column > TOLERANCE))


def solve(game: MatrixGame, *, tolerance: float = TOLERANCE) -> Equilibrium:
    """Return the first equilibrium found, or the profile of least regret if no method finds one.

    Args:
        game: any; rows and columns may repeat.
        tolerance: residual regret at which the search stops.
    """
    reduced = _Merged.of(game)
    best: Equilibrium | None = None
    for method, small in _attempts(reduced.game):
        profile = reduced.expand(small)
        equilibrium = Equilibrium(profile, values(game, profile), method, nash_conv(game, profile))
        if best is None or equilibrium.residual < best.residual:
            best = equilibrium
        if best.residual <= tolerance:
            break
    assert best is not None  # `_attempts` yields at least once
    return best


def pure_equilibria(game: MatrixGame) -> tuple[tuple[int, int], ...]:
    """Return (row, column) of all equilibria in pure strategies, by the coder's payoff, highest first."""
    is_best_row = game.row >= game.row.max(axis=0, keepdims=True)
    is_best_column = game.column >= game.column.max(axis=1, keepdims=True)
    cells = [(int(i), int(j)) for i, j in np.argwhere(is_best_row & is_best_column)]
    return tuple(sorted(cells, key=lambda cell: (-game.row[cell], -game.column[cell], cell)))


def _attempts(game: MatrixGame) -> Iterator[tuple[str, Profile]]:
    m, n = game.shape
    for i, j in pure_equilibria(game)[:1]:
        yield "pure", Profile(np.eye(m)[i], np.eye(n)[j])
    if game.is_constant_sum:
        profile = Profile(maximin(game.row), maximin(game.column.T))
        yield "linear program", profile
        yield from _polish(game, profile, "linear program")
    is_large = m * n > _EXACT_CELLS
    if is_large:
        yield from _by_regret(game)
    for label in range(min(_N_LABELS, m + n)):
        exact = lemke_howson(game, dropped=label, most_pivots=200 if is_large else 2_000)
        if exact is not None:
            yield "Lemke-Howson", exact
    if not is_large:
        yield from _by_regret(game)


def _by_regret(game: MatrixGame) -> Iterator[tuple[str, Profile]]:
    for n_steps in _POLISHED_STEPS:
        profile = regret_matching(game, n_steps=n_steps)
        yield "regret matching", profile
        yield from _polish(game, profile, "regret matching")


def _polish(game: MatrixGame, profile: Profile, method: str) -> Iterator[tuple[str, Profile]]:
    """Guess the support from a profile that is nearly an equilibrium, and solve the linear programs on it."""
    for least in _SUPPORT:
        rows, columns = np.flatnonzero(profile.row > least), np.flatnonzero(profile.column > least)
        supported = supported_profile(game, rows, columns)
        if supported is not None:
            yield method, supported
    near_rows = best_responses(game.row @ profile.column, tolerance=_SUPPORT[0])
    near_columns = best_responses(profile.row @ game.column, tolerance=_SUPPORT[0])
    supported = supported_profile(game, near_rows, near_columns)
    if supported is not None:
        yield method, supported


@dataclass(frozen=True, slots=True, eq=False)
class _Merged:
    """A game without repeated rows and columns, and their positions in the whole game."""

    game: MatrixGame
    rows: NDArray[np.intp]
    """The first of each set of equal rows."""
    columns: NDArray[np.intp]
    """The first of each set of equal columns."""
    shape: tuple[int, int]
    """(N, M) of the whole game."""

    @classmethod
    def of(cls, game: MatrixGame) -> _Merged:
        rows = _first_of_equal(np.hstack([game.row, game.column]))
        columns = _first_of_equal(np.vstack([game.row[rows], game.column[rows]]).T)
        cells = np.ix_(rows, columns)
        return cls(MatrixGame(game.row[cells], game.column[cells]), rows, columns, game.shape)

    def expand(self, profile: Profile) -> Profile:
        """Return the profile in the whole game."""
        row, column = np.zeros(self.shape[0]), np.zeros(self.shape[1])
        row[self.rows], column[self.columns] = profile.row, profile.column
        return Profile(row, column)


def _first_of_equal(lines: NDArray[np.float64]) -> NDArray[np.intp]:
    first: NDArray[np.intp] = np.sort(np.unique(lines, axis=0, return_index=True)[1])
    return first
