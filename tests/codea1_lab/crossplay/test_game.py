from __future__ import annotations

from math import nan

import numpy as np
import pytest

pytest.importorskip("scipy", reason="scipy is not installed")

from codea1_lab.crossplay.game import Pair, best_response_cycles, empirical_game, reversals
from codea1_lab.games.matrix_game import MatrixGame
from tests.codea1_lab.crossplay.conftest import play_of

PENNIES = np.array([[1.0, 0.0], [0.0, 1.0]])


def noisy(means: np.ndarray, n: int = 60) -> list[list[list[float]]]:
    drawn = np.random.default_rng(5).random((*means.shape, n)) < (0.1 + 0.8 * means)[:, :, None]
    return drawn.astype(float).tolist()


def test_matching_pennies_is_mixed_goes_round_and_turns_rankings() -> None:
    found = empirical_game(play_of(noisy(PENNIES)), n_draws=40)
    assert len(found.equilibrium.row_support) == len(found.equilibrium.column_support) == 2
    assert found.equilibrium.residual < 1e-8
    assert found.cycles == ((Pair(0, 1), Pair(1, 0)),)
    assert found.cycling == 1.0
    chance = found.coders[0].chance
    assert 0 < chance.low < chance.mean < chance.high < 1
    assert found.coder_value.low <= found.coder_value.mean <= found.coder_value.high
    assert all(each.played == 1.0 for each in (*found.coders, *found.testers))
    circle = best_response_cycles(MatrixGame.of(PENNIES, 1 - PENNIES))
    assert circle == ((Pair(0, 1), Pair(1, 0)),)
    assert best_response_cycles(MatrixGame.of(PENNIES, PENNIES)) == ()
    assert best_response_cycles(MatrixGame.of(np.zeros((3, 2)), np.zeros((3, 2)))) == ()
    (found,) = reversals(play_of(noisy(PENNIES)))
    assert (found.first, found.second) == (Pair(0, 0), Pair(1, 1))
    assert reversals(play_of(noisy(np.full((3, 3), 0.5), n=20)), seed=1) == ()
    assert reversals(play_of(noisy(np.array([[1.0, 0.6], [0.4, 0.0]])))) == ()


def test_a_dominant_coder_is_played_in_every_draw_and_a_pair_without_payoffs_in_none() -> None:
    found = empirical_game(play_of(noisy(np.array([[1.0, 0.9], [0.2, 0.1]]))), n_draws=60)
    assert found.equilibrium.row_support == (0,)
    assert [each.played for each in found.coders] == [1.0, 0.0]
    assert (found.cycles, found.cycling) == ((), 0.0)
    assert empirical_game(play_of([[[1.0, 1.0], [nan, nan]]]), n_draws=5) is None
    found = empirical_game(play_of([[[1.0, nan, 0.0, nan], [0.5, 0.5, 0.0, 0.25]]]), n_draws=100)
    assert np.isfinite([found.coder_value.low, found.coder_value.high]).all()
