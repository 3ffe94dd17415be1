"""Refuses a run that does not fit its devices, and finds the settings with which it does."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import ceil
from typing import Any

from codea1_agents.models.shapes import UnknownShape
from codea1_agents.train.settings.loading import changed, load_training
from codea1_agents.train.settings.options import TrainingConfig
from codea1_agents.train.sizing.devices import Devices, devices_here
from codea1_agents.train.sizing.run_size import RunSize, size_of
from codea1_env.errors import UserError

_SMALLER_PRESETS = ("node-lora", "one-gpu-lora", "one-gpu")
"""Presets for fewer or smaller GPUs, the largest models first."""


def devices_of(config: TrainingConfig) -> Devices | None:
    """Return the devices of this machine; None: a run has those of another cluster, or they cannot be examined."""
    return None if config.cluster.address else devices_here()


def require_fit(config: TrainingConfig) -> None:
    """Check that a run can fit this machine. Nothing is checked for another cluster, or for a model of unknown shape.

    Raises:
        UserError: it cannot; the sentence says what to change.
    """
    devices = devices_of(config)
    if devices is None:
        return
    try:
        size = size_of(config, devices)
    except UnknownShape:
        return
    if size.faults:
        raise UserError(f"{advice(config, size)}; --force starts it anyway")


def advice(config: TrainingConfig, size: RunSize) -> str:
    """Return in one sentence whether a run fits, or what to change."""
    if not size.faults:
        host_gb = ceil(size.placement.host_bytes / 1e9)
        return f"this run fits {size.devices}{'' if size.devices.host_gb else f' and a host of {host_gb} GB'}"
    remedy = _remedy(config, size)
    return f"this run does not fit {size.devices}: {'; '.join(size.faults)}; {remedy}"


def _remedy(config: TrainingConfig, size: RunSize) -> str:
    """Return the settings, or else the preset, with which a run fits; few changes and mild ones come first."""
    single = [each for each in _single_changes(config, size) if each]
    for number in range(1, len(single) + 1):
        for chosen in combinations(single, number):
            changes = {key: value for each in chosen for key, value in each.items()}
            if not size_of(changed(config, changes), size.devices).faults:
                texts = [f"{key}={str(value).lower()}" for key, value in changes.items()]  # as `--set` takes them
                return f"it fits with {' and '.join(filter(None, (', '.join(texts[:-1]), texts[-1])))}"
    for name in _SMALLER_PRESETS:
        if not size_of(load_training(name), size.devices).faults:
            return f"the preset {name} fits"
    return f"none of the presets {', '.join(_SMALLER_PRESETS)} fits, either"


def _single_changes(config: TrainingConfig, size: RunSize) -> Iterator[dict[str, Any]]:
    """Yield changes that save memory, the mildest first, without the settings that are so already."""
    learning = {name: each for name, each in size.modules.items() if each.learns}
    whole = [name for name, each in learning.items() if each.settings.lora is None]
    every: list[dict[str, Any]] = [
        {f"agents.{name}.gradient_checkpointing": True for name in learning},
        {"training.micro_batch_tokens": max((each.longest for each in learning.values()), default=0)},
        {"training.kl_coeff": 0.0},
        {"cluster.sharding": "full"} if config.cluster.learners > 1 and config.cluster.sharding == "none" else {},
        {f"agents.{name}.lora.rank": 16 for name in whole},
        _spread(size.devices.n_gpus),
    ]
    for changes in every:
        yield {key: value for key, value in changes.items() if present_value(config, key) != value}


def _spread(n_gpus: int) -> dict[str, Any]:
    """Return the settings that use some GPUs: half of them sample, or both kinds of processes share one."""
    if not n_gpus:
        return {"cluster.gpus_per_env_runner": 0.0, "cluster.gpus_per_learner": 0.0}
    n_runners = max(1, n_gpus // 2)
    share = 0.5 if n_gpus == 1 else 1.0
    return {
        "cluster.env_runners": n_runners,
        "cluster.gpus_per_env_runner": share,
        "cluster.learners": max(1, n_gpus - n_runners),
        "cluster.gpus_per_learner": share,
    }


def present_value(config: TrainingConfig, key: str) -> Any:
    """Return the value of a dotted key; None below a table that is not set."""
    found: Any = config
    for part in key.split("."):
        found = getattr(found, part, None)
    return found
