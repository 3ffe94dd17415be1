"""Whole training runs with tiny models: they learn, repeat themselves from a seed and go on from a checkpoint."""

from __future__ import annotations

import gc
import json
import os
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import ROOT
from tests.support.forks import Fork
from tests.support.grpo import ON_RAY, Weights, built, distance, weights_of

ray = pytest.importorskip("ray", reason="Ray is not installed")

from codea1_agents.train.grpo import GRPOConfig, ModelSettings  # noqa: E402
from codea1_env.errors import UserError  # noqa: E402

pytestmark = ON_RAY


RESUMED = """
import json, sys
import numpy, ray, torch
from codea1_agents.train.grpo import GRPO
from tests.support.grpo import weights_of
torch.set_num_threads(1)
ray.init(sys.argv[3], log_to_driver=False)
algorithm = GRPO.from_checkpoint(sys.argv[1])
for _ in range(2):
    algorithm.train()
weights = weights_of(algorithm)
numpy.savez(sys.argv[2], **{f"{m}/{name}": array for m in weights for name, array in weights[m].items()})
book = [str(entry.entry.key) for entry in algorithm.book.entries()]
print(json.dumps({"book": book, "next_task": algorithm._next_task, "iteration": algorithm.iteration}))
"""


def trained(config: GRPOConfig, n: int) -> tuple[Weights, list[dict[str, Any]]]:
    with built(config.copy(copy_frozen=False)) as algorithm:
        results = [algorithm.train() for _ in range(n)]
        return weights_of(algorithm), results


def largest_ratio_gap(results: list[dict[str, Any]]) -> float:
    found = [result["learners"] for result in results]
    return max(each[role]["ratio_gap"] for each in found for role in ("coder", "tester") if role in each)


def test_both_roles_learn(config: GRPOConfig) -> None:
    _, results = trained(config, 40)
    rewards = [result["env_runners"]["coder_reward"] for result in results]
    assert np.mean(rewards[-8:]) > np.mean(rewards[:8]) + 0.2
    validity = [result["env_runners"]["validity"] for result in results if "validity" in result["env_runners"]]
    assert np.mean(validity[-8:]) > np.mean(validity[:8])
    assert {"kl", "policy_loss", "clip_share", "grad_norm"} <= results[0]["learners"]["coder"].keys()
    assert largest_ratio_gap(results) < 1e-5  # one step per batch: the policy that learns is the one that sampled


def test_the_same_seed_gives_the_same_run(config: GRPOConfig) -> None:
    first, results = trained(config, 4)
    again, repeated = trained(config, 4)
    assert distance(first, again) == 0.0
    for name in ("coder_reward", "tester_reward", "coder_tokens"):
        assert [r["env_runners"][name] for r in results] == [r["env_runners"][name] for r in repeated]
    config.debugging(seed=1)
    other, _ = trained(config, 4)
    assert distance(first, other) > 0.0


@pytest.mark.parametrize("turns", [1, 3])
def test_a_run_goes_on_from_a_checkpoint_as_if_it_had_not_stopped(
    config: GRPOConfig, tmp_path: Path, turns: int
) -> None:
    config.training(turns=turns)
    algorithm = config.build_algo()
    assert getattr(algorithm.env_runner.module["coder"], "reference", None) is None  # learners hold it
    assert algorithm.learner_group._learner.module["coder"].reference is not None
    for _ in range(2):
        algorithm.train()
    path = algorithm.save_to_path(tmp_path / "checkpoint")
    for _ in range(2):
        algorithm.train()
    expected, book = weights_of(algorithm), [str(entry.entry.key) for entry in algorithm.book.entries()]
    told = {(e.entry.provenance.coder, e.entry.provenance.tester) for e in algorithm.book.entries()}
    assert told == {(algorithm.settings.player_of("coder"), algorithm.settings.player_of("tester"))}
    assert "nobody" not in str(told)
    state = algorithm.get_state()
    state["grpo"] = {**state["grpo"], "judge_version": 1}
    with pytest.raises(UserError, match="version 1 of the judge"):
        algorithm.set_state(state)
    algorithm.stop()

    other = config.copy(copy_frozen=False).build_algo()
    other.train()  # the state is taken whole, whatever was there
    for _ in range(2):  # the second time back in time, in place
        other.restore_from_path(path)
        for _ in range(2):
            other.train()
        assert distance(expected, weights_of(other)) == 0.0
        assert [str(entry.entry.key) for entry in other.book.entries()] == book
        assert (other.iteration, other._next_task) == (4, 16)
    other.stop()

    arguments = [str(path), str(tmp_path / "w.npz"), ray.get_runtime_context().gcs_address]
    status, said = Fork(RESUMED, *arguments, folder=ROOT, environment=os.environ).end()
    assert status == 0, said
    told = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
    assert told == {"book": book, "next_task": 16, "iteration": 4}
    with np.load(tmp_path / "w.npz") as arrays:
        elsewhere = {m: {name: arrays[f"{m}/{name}"] for name in expected[m]} for m in expected}
    assert distance(expected, elsewhere) == 0.0


def test_full_collections_leave_out_what_was_loaded_until_the_end(config: GRPOConfig) -> None:
    gc.unfreeze()  # what another test left
    algorithm = config.build_algo()
    assert gc.get_freeze_count() > 100_000  # torch, transformers and RLlib
    first = weakref.ref(algorithm.env_runner.module["coder"].model)
    for _ in range(2):  # as a cell of a notebook that runs again: nobody stops what it replaces
        algorithm = config.copy(copy_frozen=False).build_algo()
    assert first() is None
    algorithm.stop()
    assert not gc.get_freeze_count()


def test_weights_in_fewer_bits_come_near_those_that_learn(config: GRPOConfig, phrase_folders: dict[str, str]) -> None:
    small = {role: ModelSettings(folder, sampling_dtype="bfloat16") for role, folder in phrase_folders.items()}
    _, results = trained(config.llm_agents(**small), 2)
    assert 0 < largest_ratio_gap(results) < 0.1
