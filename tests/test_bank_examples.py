"""What the examples of the bank game compute: tables and PPO come near equilibria, policy-space oracles reach one."""

from __future__ import annotations

import importlib
import os

import numpy as np
import pytest

from codea1_env.errors import UnknownName
from codea1_lab.games.bank_game import BankGame, strategies_of
from codea1_lab.games.matrix_game import MatrixGame
from tests.support import ROOT

os.environ.setdefault("RAY_AUTH_MODE", "disabled")
pytest.importorskip("scipy", reason="scipy is not installed")


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples")
    return importlib.import_module


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    from codea1_env.bank import BankRecipe, load_bank

    recipe = BankRecipe(n_wrong=3, n_attacked=2, testers=("examples", "boundary"))
    return load_bank("starter", recipe=recipe, limit=2, cache=tmp_path_factory.mktemp("banks"))


def bank_game(seed=0):
    rng = np.random.default_rng(seed)
    return BankGame(tuple(MatrixGame.of(rng.normal(size=(4, 5))) for _ in range(3)))


@pytest.mark.slow
def test_tables_solve_the_bank(example, bank):
    learn_tabular = example("bank_game_tabular").learn_tabular
    game = BankGame.of(bank.payoffs())
    curve = learn_tabular(bank, episodes=3000, seed=0, n_points=8)
    wanted = game.values(*strategies_of(game.solve()))
    np.testing.assert_allclose(curve.values[-1], wanted, atol=0.05)
    assert curve.exploitability[-1] < 0.05 < curve.exploitability[0]
    again = learn_tabular(bank, episodes=3000, seed=0, n_points=8)
    assert again.exploitability == curve.exploitability


def test_psro_ends_in_an_equilibrium_of_the_whole_game(example):
    game = bank_game()
    psro = example("bank_game_psro")
    found = psro.psro(psro.BankPolicies(game))
    assert found.nash_conv[-1] < 1e-9
    assert len(found.rows) < 4**3
    value = found.profile.row @ found.game.row @ found.profile.column
    assert value == pytest.approx(game.values(*strategies_of(game.solve()))[0], abs=1e-9)


@pytest.mark.parametrize("name", ["nash", "uniform"])
def test_psro_runs_with_every_meta_solver(example, name):
    psro = example("bank_game_psro")
    gaps = psro.psro(psro.BankPolicies(bank_game()), meta_solver=name, most_iterations=8).nash_conv
    assert gaps[-1] < gaps[0]
    with pytest.raises(UnknownName, match="meta-solver"):
        psro.psro(psro.BankPolicies(bank_game()), meta_solver="best")


@pytest.mark.ray
@pytest.mark.filterwarnings("ignore")
def test_who_is_asked_when(example, bank):
    pytest.importorskip("ray", reason="ray is not installed")
    ppo, payoffs = example("bank_game_ppo"), bank.payoffs()
    at_once = ppo.BankMultiAgentEnv({"bank": bank})
    seen, _ = at_once.reset(seed=0)
    assert set(seen) == {"coder_0", "tester_0"}
    problem = int(seen["coder_0"][:2].argmax())
    _, rewards, over, _, _ = at_once.step({"coder_0": 1, "tester_0": 2})
    assert rewards == {"coder_0": payoffs.coder[problem, 1, 2], "tester_0": payoffs.tester[problem, 1, 2]}
    assert over["__all__"]

    turns = ppo.BankMultiAgentEnv({"bank": bank, "tester_view": "white_box"})
    seen, _ = turns.reset(seed=0)
    assert set(seen) == {"coder_0"}
    seen, rewards, over, _, _ = turns.step({"coder_0": 1})
    assert (set(seen), rewards, over["__all__"]) == ({"tester_0"}, {}, False)
    assert turns.step({"tester_0": 2})[2]["__all__"]


@pytest.mark.ray
@pytest.mark.filterwarnings("ignore")
def test_stock_ppo_becomes_less_exploitable(example, bank):
    pytest.importorskip("ray", reason="ray is not installed")
    points = list(example("bank_game_ppo").train_ppo(bank, iterations=6, batch=256))
    assert points[-1].exploitability < points[0].exploitability / 2
