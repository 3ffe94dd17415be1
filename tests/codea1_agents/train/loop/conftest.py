"""Tiny models whose every reply is a program or a suite, as in the tests of `grpo`, and settings for runs with them."""

from __future__ import annotations

from typing import Any

import pytest


def without_times(lines: Any) -> list[dict[str, Any]]:
    """The lines of a run's metrics without clocks, for comparisons."""
    return [{name: value for name, value in line.items() if name != "times"} for line in lines]


def weights_of(run: Any) -> dict[str, dict[str, Any]]:
    """The weights of the models that a run has exported."""
    from safetensors.torch import load_file

    return {role: load_file(folder / "model.safetensors") for role, folder in run.models.items()}


@pytest.fixture
def settings(phrase_folders: dict[str, str], increments: str) -> dict[str, Any]:
    """A run of a second or two."""
    return {
        "run": {"steps": 4},
        "game": {"problems": increments},
        "agents": {role: {"model": folder, "max_tokens": 2} for role, folder in phrase_folders.items()},
        "rollout": {"problems_per_step": 2, "problems_at_once": 2, "n_candidates": 6, "n_suites": 4},
        "training": {"lr": 3e-3, "warmup_steps": 0, "minibatches_per_epoch": 1, "micro_batch_size": 0},
        "cluster": {"torch_threads": 1, "cpus_per_env_runner": 0.5},
        "checkpoints": {"every": 2},
        "logging": {"tensorboard": False, "samples_every": 0},
    }
