"""OpenSpiel as a witness: the same numbers from another's code."""

from __future__ import annotations

import numpy as np
import pytest

from codea1_lab.games.equilibria import solve
from codea1_lab.games.matrix_game import MatrixGame, Profile, nash_conv

pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")  # another project's

N_GAMES = 40


def games():
    rng = np.random.default_rng(7)
    for k in range(N_GAMES):
        m, n = rng.integers(2, 6, 2)
        row = rng.integers(0, 9, (m, n)) / 8 if k % 2 else rng.normal(size=(m, n))
        column = -row if k % 3 == 0 else rng.normal(size=(m, n))
        yield MatrixGame.of(row, column), Profile(rng.dirichlet(np.ones(m)), rng.dirichlet(np.ones(n)))


def spiel_game(game):
    tensor = pyspiel.create_tensor_game([game.row.tolist(), game.column.tolist()])
    return pyspiel.convert_to_turn_based(tensor)


def spiel_policy(spiel, profile):
    from open_spiel.python import policy

    found = policy.TabularPolicy(spiel)
    for player, strategy in enumerate((profile.row, profile.column)):
        (state,) = found.states_per_player[player]
        chances = found.action_probability_array[found.state_lookup[state]]
        chances[:] = 0.0
        chances[: len(strategy)] = strategy
    return found


def test_nash_conv_is_open_spiels():
    from open_spiel.python.algorithms import exploitability

    for game, profile in games():
        spiel = spiel_game(game)
        theirs = exploitability.nash_conv(spiel, spiel_policy(spiel, profile))
        assert theirs == pytest.approx(nash_conv(game, profile), abs=1e-9)


def test_open_spiel_finds_no_regret_in_our_equilibria():
    from open_spiel.python.algorithms import exploitability

    for game, _ in games():
        spiel = spiel_game(game)
        assert exploitability.nash_conv(spiel, spiel_policy(spiel, solve(game).profile)) < 1e-8
