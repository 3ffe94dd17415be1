"""Advantages are those of TRL's own trainer, run on the same rewards; skipped where TRL is not installed.

`test_advantages.py` compares them with a computation one number at a time, wherever the tests run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

trl = pytest.importorskip("trl", reason="TRL is not installed: pip install trl")
datasets = pytest.importorskip("datasets", reason="TRL's data sets are not installed")

from codea1_agents.train.grpo.advantages import GroupedPart, advantages_by_parts, group_advantages, over_batch  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")  # TRL's own

N_GROUPS, GROUP = 6, 8
_EPSILON_OF_TRL, _EPSILON = 1e-4, 1e-6


def advantages_of_trl(folder: str, parts: list[np.ndarray], where: Path, **settings: Any) -> np.ndarray:
    """What its trainer makes of rewards whose parts have the shape (groups, group); nan is what it calls None."""
    rewards = parts[0]

    def function_of(part: np.ndarray) -> Callable[..., list[float | None]]:
        def reward(completions: list[Any], **_: Any) -> list[float | None]:
            assert len(completions) == part.size
            return [None if np.isnan(each) else float(each) for each in part.ravel()]

        return reward

    batch = {"per_device_train_batch_size": rewards.size, "num_generations": rewards.shape[1], "max_steps": 1}
    quiet = {"save_strategy": "no", "report_to": [], "disable_tqdm": True, "use_cpu": True, "bf16": False}
    arguments = trl.GRPOConfig(output_dir=str(where), max_completion_length=2, **batch, **quiet, **settings)
    prompts = datasets.Dataset.from_list([{"prompt": f"problem {number}"} for number in range(rewards.shape[0])])
    functions: list[Any] = [function_of(part) for part in parts]
    trainer = trl.GRPOTrainer(model=folder, reward_funcs=functions, args=arguments, train_dataset=prompts)
    trainer.train()
    return np.array(list(trainer._logs["advantages"])).reshape(rewards.shape)


def test_advantages_are_those_of_trl(model_folder: str, tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    rewards = np.round(draw.random((N_GROUPS, GROUP)), 3)
    rewards[1] = 0.25  # nothing to learn
    rewards[2, [0, 5]] = np.nan  # masked
    found = group_advantages(rewards)
    expected = advantages_of_trl(model_folder, [rewards], tmp_path)
    # The two add different constants to the deviation: verl's 1e-6, which the paper trained with, and TRL's 1e-4.
    deviation = np.nanstd(rewards, axis=-1, ddof=1, keepdims=True)
    assert found.values * (deviation + _EPSILON) == pytest.approx(expected * (deviation + _EPSILON_OF_TRL), abs=1e-6)
    assert np.abs(found.values - expected).max() < 1e-3
    assert not found.is_trained[1].any()


def test_decoupled_advantages_are_those_of_trl(model_folder: str, tmp_path: Path) -> None:
    """In units in which the constants beside the deviations, 1e-4 and 1e-6, do not matter."""
    draw = np.random.default_rng(1)
    values = np.round(100 * draw.random((3, N_GROUPS, GROUP)))
    values[0, 1] = 25.0  # one part tells nothing apart
    values[:, 2] = 50.0  # no part does
    values[:, 3, [0, 5]] = np.nan  # masked
    weights = [25.0, 75.0, -50.0]
    parts = [GroupedPart(str(n), part, weight) for n, (part, weight) in enumerate(zip(values, weights, strict=True))]
    found = advantages_by_parts(parts, "decoupled", keeps_flat=True)
    expected = advantages_of_trl(
        model_folder, list(values), tmp_path, multi_objective_aggregation="normalize_then_sum", reward_weights=weights
    )
    assert over_batch(np.where(found.is_trained, found.values, np.nan)) == pytest.approx(expected, abs=1e-4)
    assert not found.values[2].any()
