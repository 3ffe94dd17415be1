"""The bank game in RLlib: the environment's turns, and that stock PPO becomes less exploitable."""

from __future__ import annotations

import os

import pytest

os.environ.setdefault("RAY_AUTH_MODE", "disabled")
ray = pytest.importorskip("ray", reason="ray is not installed")
pytest.importorskip("scipy", reason="scipy is not installed")
pytestmark = [pytest.mark.xdist_group("ray"), pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    from codea1_env.bank import BankRecipe, load_bank

    recipe = BankRecipe(n_wrong=3, n_attacked=2, testers=("examples", "boundary"))
    return load_bank("starter", recipe=recipe, limit=2, cache=tmp_path_factory.mktemp("banks"))


def test_who_is_asked_when(bank):
    from codea1_agents.study.rllib_bank import BankMultiAgentEnv

    payoffs = bank.payoffs()
    at_once = BankMultiAgentEnv({"bank": bank})
    seen, _ = at_once.reset(seed=0)
    assert set(seen) == {"coder_0", "tester_0"}
    problem = int(seen["coder_0"][:2].argmax())
    _, rewards, over, _, _ = at_once.step({"coder_0": 1, "tester_0": 2})
    assert rewards == {"coder_0": payoffs.coder[problem, 1, 2], "tester_0": payoffs.tester[problem, 1, 2]}
    assert over["__all__"]

    turns = BankMultiAgentEnv({"bank": bank, "tester_view": "white_box"})
    seen, _ = turns.reset(seed=0)
    assert set(seen) == {"coder_0"}
    seen, rewards, over, _, _ = turns.step({"coder_0": 1})
    assert (set(seen), rewards, over["__all__"]) == ({"tester_0"}, {}, False)
    assert turns.step({"tester_0": 2})[2]["__all__"]


def test_stock_ppo_becomes_less_exploitable(bank):
    from codea1_agents.study.rllib_bank import train_ppo

    points = list(train_ppo(bank, iterations=6, batch=256))
    assert points[-1].exploitability < points[0].exploitability / 2
