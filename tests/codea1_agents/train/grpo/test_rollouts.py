"""Rollouts ahead: what they sample with, what a checkpoint holds of them, and lost runners."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codea1_env.errors import UserError
from tests.support.grpo import ON_RAY, distance, tiny_config, weights_of

pytest.importorskip("ray", reason="Ray is not installed")
from codea1_agents.train.grpo import GRPOConfig

pytestmark = ON_RAY


@pytest.fixture(scope="module")
def settings(phrase_folders: dict[str, str], increments: str) -> GRPOConfig:
    made: GRPOConfig = tiny_config(phrase_folders, increments).training(overlap=1)
    made.env_runners(num_env_runners=2, num_cpus_per_env_runner=0.5)
    return made.fault_tolerance(restart_failed_env_runners=True)


@pytest.fixture(scope="module")
def algorithm(settings: GRPOConfig, cluster: None) -> Iterator[Any]:
    made = settings.copy(copy_frozen=False).build_algo()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def beginning(algorithm: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(algorithm.save_to_path(tmp_path_factory.mktemp("beginning")))


def sampled(algorithm: Any) -> list[tuple[Any, ...]]:
    """The programs of the last iteration, by task."""
    return [(tree.task.number, *(answer.text for answer in tree.candidates)) for tree in algorithm.last_trees]


def test_each_iteration_is_sampled_with_the_weights_before_the_last_one(
    algorithm: Any, beginning: str, settings: GRPOConfig
) -> None:
    """The second iteration is that of a run that has not learnt yet; afterwards weights are one iteration old."""
    algorithm.restore_from_path(beginning)
    stale, trees = [], []
    for _ in range(3):
        algorithm.train()
        stale.append(algorithm.last_step.staleness)
        trees.append(sampled(algorithm))
    assert stale == [0, 1, 1]

    frozen = settings.copy(copy_frozen=False).training(overlap=0, lr=1e-30).build_algo()
    for number in range(2):
        frozen.train()
        assert sampled(frozen) == trees[number], number
    frozen.train()
    assert sampled(frozen) != trees[2]
    frozen.stop()


def test_it_samples_while_it_learns(algorithm: Any, beginning: str, monkeypatch: pytest.MonkeyPatch) -> None:
    algorithm.restore_from_path(beginning)
    during = []
    update = algorithm.learner_group.update

    def watched(**given: Any) -> Any:
        during.append([thread.name for thread in threading.enumerate() if thread.name.startswith("codea1-rollouts")])
        algorithm._ahead.finish()  # without an update in between
        return update(**given)

    monkeypatch.setattr(algorithm.learner_group, "update", watched)
    algorithm.train()
    assert during[0]


def test_a_checkpoint_holds_the_trees_that_were_sampled_ahead(algorithm: Any, beginning: str, tmp_path: Path) -> None:
    algorithm.restore_from_path(beginning)
    algorithm.train()
    saved = algorithm.save_to_path(tmp_path / "checkpoint")
    expected = [(algorithm.train(), sampled(algorithm), weights_of(algorithm)) for _ in range(2)]
    algorithm.restore_from_path(saved)
    for result, tokens, weights in expected:
        again = algorithm.train()
        assert sampled(algorithm) == tokens
        assert algorithm.last_step.staleness == 1
        assert again["book_size"] == result["book_size"]
        assert distance(weights_of(algorithm), weights) < 1e-6


def test_a_runner_lost_in_between_changes_nothing(algorithm: Any, beginning: str) -> None:
    algorithm.restore_from_path(beginning)
    expected = [(algorithm.train(), sampled(algorithm)) for _ in range(3)]
    algorithm.restore_from_path(beginning)
    algorithm.train()
    algorithm._ahead.finish()
    (process, _) = algorithm.env_runner_group.foreach_env_runner(lambda _: os.getpid(), local_env_runner=False)
    os.kill(process, signal.SIGKILL)
    for result, tokens in expected[1:]:
        again = algorithm.train()
        assert sampled(algorithm) == tokens
        assert again["tasks_lost"] == 0
        assert again["book_size"] == result["book_size"]


def test_it_needs_remote_runners(settings: GRPOConfig) -> None:
    config = settings.copy(copy_frozen=False).env_runners(num_env_runners=0)
    with pytest.raises(UserError, match="overlap: it needs remote runners"):
        config.validate()
