"""Regret matching in a matrix game, whose averages come near an equilibrium where exact methods take too long. Pure."""

from __future__ import annotations

import numpy as np

from codea1_lab.games.matrix_game import MatrixGame, Profile, Vector


def regret_matching(game: MatrixGame, *, n_steps: int) -> Profile:
    """Return the average strategies after `n_steps` steps, each of which is weighed by its number.

    Both players play each choice in proportion to their regret for not having played it; negative regrets become 0. The
    start is nearly uniform, since a symmetric one may have no regret.

    Source: Tammelin et al., Solving Heads-Up Limit Texas Hold'em (2015): regret matching+.
    """
    x, y = (_proportional(1.0 + 0.1 * np.arange(size) / size) for size in game.shape)
    regret_of_rows, regret_of_columns = np.zeros_like(x), np.zeros_like(y)
    total_x, total_y = np.zeros_like(x), np.zeros_like(y)
    for step in range(1, n_steps + 1):
        of_rows, of_columns = game.row @ y, x @ game.column
        np.maximum(regret_of_rows + of_rows - x @ of_rows, 0.0, out=regret_of_rows)
        np.maximum(regret_of_columns + of_columns - y @ of_columns, 0.0, out=regret_of_columns)
        x, y = _proportional(regret_of_rows), _proportional(regret_of_columns)
        total_x += step * x
        total_y += step * y
    return Profile(total_x / total_x.sum(), total_y / total_y.sum())


def _proportional(weights: Vector) -> Vector:
    total = weights.sum()
    chances: Vector = weights / total if total > 0 else np.full(len(weights), 1 / len(weights))
    return chances
