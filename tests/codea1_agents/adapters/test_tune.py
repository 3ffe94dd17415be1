from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from codea1_env import load_problems
from codea1_env.bank import load_bank
from codea1_env.bank_v0.views import CoderBankEnv


def play(config: dict[str, Any], bank: Any) -> dict[str, float]:
    """A trial: play every problem with one program."""
    env = CoderBankEnv(0, bank=bank)
    rewards = []
    for problem in bank.problems:
        env.reset(seed=0, options={"problem_id": problem.bank.problem.id})
        rewards.append(env.step(config["program"])[1])
    return {"reward": float(np.mean(rewards))}


@pytest.mark.models
@pytest.mark.ray
@pytest.mark.filterwarnings("ignore")  # of Ray
def test_tune_finds_the_best_program_of_a_bank(cluster, tmp_path, monkeypatch):
    from ray import tune

    monkeypatch.setenv("TUNE_DISABLE_SIGINT_HANDLER", "1")  # it would stay, and ignore later interrupts
    bank = load_bank(load_problems("starter", limit=2), rules="fixed")
    tuner = tune.Tuner(
        tune.with_parameters(play, bank=bank),
        param_space={"program": tune.grid_search(list(range(3)))},
        run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0),
    )
    best = tuner.fit().get_best_result("reward", "max")
    means = bank.payoffs().coder[:, :, 0].mean(axis=0)
    assert best.metrics["reward"] == pytest.approx(max(means[:3]))
    assert best.config["program"] == int(means[:3].argmax())
