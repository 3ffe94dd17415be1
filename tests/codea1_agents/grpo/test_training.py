"""Whole training runs on Ray with tiny models: they learn, and neither runners nor learners change what comes out."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ray = pytest.importorskip("ray", reason="Ray is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from codea1_agents.grpo import GRPOConfig  # noqa: E402
from codea1_agents.grpo.model_settings import ModelSettings  # noqa: E402

pytestmark = [
    pytest.mark.xdist_group("ray"),
    pytest.mark.filterwarnings("default"),  # Ray's own
]

Weights = dict[str, dict[str, np.ndarray]]


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    torch.set_num_threads(1)
    ray.init(num_cpus=8, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture
def config(phrase_folders: dict[str, str], increments: str) -> GRPOConfig:
    return (
        GRPOConfig()
        .environment(rules="fixed")
        .problems(increments)
        .llm_agents(**phrase_folders)
        .training(
            lr=3e-3,
            n_candidates=6,
            n_suites=4,
            problems_per_step=4,
            problems_at_once=2,
            max_tokens={"coder": 2, "tester": 2},
            minibatches_per_epoch=1,
            warmup_steps=0,
            rows_at_once=5,
        )
    )


def weights_of(algorithm: Any) -> Weights:
    return algorithm.learner_group.get_state(components="learner/rl_module")["learner"]["rl_module"]


def trained(config: GRPOConfig, n: int, **layout: Any) -> tuple[Weights, list[dict[str, Any]]]:
    config = config.copy(copy_frozen=False)
    config.env_runners(num_env_runners=layout.get("runners", 0), num_cpus_per_env_runner=0.5)
    config.learners(num_learners=layout.get("learners", 0), num_cpus_per_learner=0.5)
    algorithm = config.build_algo()
    try:
        results = [algorithm.train() for _ in range(n)]
        return weights_of(algorithm), results
    finally:
        algorithm.stop()


def distance(a: Weights, b: Weights) -> float:
    assert a.keys() == b.keys()
    return max(float(np.abs(a[m][name] - b[m][name]).max()) for m in a for name in a[m])


def test_both_roles_learn_and_the_same_seed_gives_the_same_run(config: GRPOConfig) -> None:
    first, results = trained(config, 40)
    rewards = [result["env_runners"]["coder_reward"] for result in results]
    assert np.mean(rewards[-8:]) > np.mean(rewards[:8]) + 0.2
    validity = [result["env_runners"]["validity"] for result in results if "validity" in result["env_runners"]]
    assert np.mean(validity[-8:]) > np.mean(validity[:8])
    assert {"kl", "policy_loss", "clip_share", "grad_norm"} <= results[0]["learners"]["coder"].keys()
    # One step per batch: the policy that learns is the one that sampled.
    assert max(r["learners"][m]["ratio_gap"] for r in results for m in ("coder", "tester") if m in r["learners"]) < 1e-5
    again, _ = trained(config, 40)
    assert distance(first, again) == 0.0


@pytest.mark.parametrize("layout", [{"runners": 2}, {"runners": 1, "learners": 1}, {"runners": 2, "learners": 2}])
def test_the_layout_changes_nothing(config: GRPOConfig, layout: dict[str, int]) -> None:
    expected, expected_results = trained(config, 3)
    found, results = trained(config, 3, **layout)
    assert distance(expected, found) < 1e-5
    for one, other in zip(expected_results, results, strict=True):
        assert one["book_size"] == other["book_size"]
        assert one["env_runners"]["coder_reward"] == pytest.approx(other["env_runners"]["coder_reward"])


def test_several_steps_per_batch_are_the_same_in_any_layout(config: GRPOConfig) -> None:
    config.training(minibatches_per_epoch=2, epochs_per_step=2)
    expected, _ = trained(config, 2)
    found, _ = trained(config, 2, learners=2)
    assert distance(expected, found) < 1e-5


def test_a_run_goes_on_from_a_checkpoint_as_if_it_had_not_stopped(config: GRPOConfig, tmp_path: Path) -> None:
    algorithm = config.build_algo()
    for _ in range(2):
        algorithm.train()
    path = algorithm.save_to_path(tmp_path / "checkpoint")
    for _ in range(2):
        algorithm.train()
    expected, book = weights_of(algorithm), [entry.entry.key for entry in algorithm.book.entries()]
    algorithm.stop()

    other = config.copy(copy_frozen=False).build_algo()
    other.restore_from_path(path)
    for _ in range(2):
        other.train()
    assert distance(expected, weights_of(other)) == 0.0
    assert [entry.entry.key for entry in other.book.entries()] == book
    assert other.iteration == 4
    other.stop()


def test_a_killed_runner_costs_no_problem(config: GRPOConfig) -> None:
    expected, _ = trained(config, 3)
    config.env_runners(num_env_runners=2, num_cpus_per_env_runner=0.5)
    config.fault_tolerance(restart_failed_env_runners=True)
    algorithm = config.build_algo()
    algorithm.train()
    (process, _) = algorithm.env_runner_group.foreach_env_runner(lambda _: os.getpid(), local_env_runner=False)
    os.kill(process, signal.SIGKILL)
    results = [algorithm.train() for _ in range(2)]
    assert [result["tasks_lost"] for result in results] == [0, 0]
    assert distance(expected, weights_of(algorithm)) < 1e-5
    algorithm.stop()


def test_a_frozen_role_plays_and_does_not_learn(config: GRPOConfig, phrase_folders: dict[str, str]) -> None:
    config.llm_agents(**phrase_folders, frozen=["tester"])
    algorithm = config.build_algo()
    before = weights_of(algorithm)
    for _ in range(2):
        algorithm.train()
    after = weights_of(algorithm)
    assert distance({"tester": before["tester"]}, {"tester": after["tester"]}) == 0.0
    assert distance({"coder": before["coder"]}, {"coder": after["coder"]}) > 0.0
    algorithm.stop()


def test_a_coder_learns_against_a_scripted_tester(config: GRPOConfig, phrase_folders: dict[str, str]) -> None:
    config.llm_agents(coder=phrase_folders["coder"]).agents(tester="fuzz")
    weights, results = trained(config, 2)
    assert set(weights) == {"coder"}
    assert 0 < results[0]["env_runners"]["coder_reward"] < 1


def test_one_module_plays_both_roles(config: GRPOConfig, phrase_folders: dict[str, str]) -> None:
    config.llm_agents(shared=phrase_folders["coder"])
    weights, results = trained(config, 2)
    assert set(weights) == {"shared"}
    assert results[-1]["responses_trained"] > 0


def test_samplers_hold_no_reference_and_learners_do(config: GRPOConfig) -> None:
    algorithm = config.build_algo()
    runner, learner = algorithm.env_runner, algorithm.learner_group._learner
    assert getattr(runner.module["coder"], "reference", None) is None
    assert learner.module["coder"].reference is not None
    algorithm.stop()


def test_weights_in_fewer_bits_come_near_those_that_learn(config: GRPOConfig, phrase_folders: dict[str, str]) -> None:
    small = {role: ModelSettings(folder, sampling_dtype="bfloat16") for role, folder in phrase_folders.items()}
    config.llm_agents(**small)
    algorithm = config.build_algo()
    results = [algorithm.train() for _ in range(2)]
    gaps = [r["learners"][m]["ratio_gap"] for r in results for m in ("coder", "tester") if m in r["learners"]]
    assert 0 < max(gaps) < 0.1
    algorithm.stop()
