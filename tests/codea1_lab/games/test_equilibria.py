from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codea1_env.errors import UserError
from codea1_lab.games.bank_game import BankGame, solve_white_box, strategies_of
from codea1_lab.games.equilibria import pure_equilibria, solve
from codea1_lab.games.lemke_howson import lemke_howson
from codea1_lab.games.matrix_game import MatrixGame, Profile, best_responses, nash_conv, regrets
from codea1_lab.games.regret_matching import regret_matching

pytest.importorskip("scipy", reason="scipy is not installed")

ROCK_PAPER_SCISSORS = MatrixGame.of([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])
DILEMMA = MatrixGame.of([[3, 0], [5, 1]], [[3, 5], [0, 1]])
THIRD = [1 / 3] * 3


def random_games(n_games, *, degenerate, seed):
    rng = np.random.default_rng(seed)
    for k in range(n_games):
        m, n = rng.integers(1, 8, 2)
        if not degenerate:
            row, column = rng.normal(size=(2, m, n))
        else:
            row, column = rng.integers(0, 3, (2, m, n)) / 8
            cells = np.ix_(rng.integers(0, m, m + 2), rng.integers(0, n, n + 2))
            row, column = row[cells], column[cells]
        yield MatrixGame.of(row, -row if k % 3 == 0 else column)


@pytest.mark.slow
@pytest.mark.parametrize("degenerate", [False, True])
def test_a_thousand_games_are_solved(degenerate):
    worst = max(solve(game).residual for game in random_games(1000, degenerate=degenerate, seed=1))
    assert worst < 1e-8


def test_lemke_and_howson_end_right_from_every_label_of_degenerate_games():
    for game in random_games(60, degenerate=True, seed=2):
        for label in range(0, sum(game.shape), 2):
            found = lemke_howson(game, dropped=label)
            assert nash_conv(game, found) < 1e-12


def test_the_known_equilibria():
    found = solve(ROCK_PAPER_SCISSORS)
    np.testing.assert_allclose([found.profile.row, found.profile.column], [THIRD, THIRD], atol=1e-12)
    assert found.method == "linear program"
    assert solve(DILEMMA).method == "pure"
    assert solve(DILEMMA).row_support == (1,)
    assert pure_equilibria(ROCK_PAPER_SCISSORS) == ()
    profile = Profile(np.array([1.0, 0.0]), np.array([1.0, 0.0]))
    assert regrets(DILEMMA, profile).tolist() == [2.0, 2.0]
    assert best_responses(DILEMMA.row @ profile.column).tolist() == [1]


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), min_size=2, max_size=5))
def test_repeating_rows_changes_no_value(rows):
    game = MatrixGame.of(rows)
    repeated = MatrixGame.of([*rows, *rows])
    assert solve(repeated).values[0] == pytest.approx(solve(game).values[0], abs=1e-9)


@pytest.mark.parametrize("tables", [([[1, 2]], [[1], [2]]), ([1, 2], [1, 2]), ([[float("nan")]], [[0]])])
def test_what_is_no_game_is_refused(tables):
    with pytest.raises(UserError, match="payoffs"):
        MatrixGame.of(*tables)


def test_averages_of_regret_matching_approach_the_value_of_zero_sum_games():
    game = MatrixGame.of([[0, -1, 2], [1, 0, -1], [-1, 1, 0]])
    after = [nash_conv(game, regret_matching(game, n_steps=n_steps)) for n_steps in (1, 4000)]
    assert after[1] < 0.06
    assert after[1] < after[0] / 5


def bank_game(seed=0):
    rng = np.random.default_rng(seed)
    return BankGame(tuple(MatrixGame.of(rng.normal(size=(4, 5))) for _ in range(3)))


def test_exploitability_is_0_at_the_equilibria_of_both_views_only():
    game = bank_game()
    coder, tester = strategies_of(game.solve())
    assert game.nash_conv(coder, tester) < 1e-9
    assert game.nash_conv(np.full((3, 4), 0.25), tester) > 0.01
    seen = game.solve_white_box()
    assert game.nash_conv(np.array([s.coder for s in seen]), np.array([s.tester for s in seen])) < 1e-12
    answered = solve_white_box(MatrixGame.of([[1, 0], [0, 1], [0.4, 0.4]]))  # by a tester that sees the program
    assert answered.coder.tolist() == [0, 0, 1]
    assert answered.tester.tolist() == [[0, 1], [1, 0], [0.5, 0.5]]
