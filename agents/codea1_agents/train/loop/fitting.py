"""Refuses a run that does not fit its devices, and finds the settings with which it does."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from codea1_agents.models.shapes import UnknownShape
from codea1_agents.train.grpo.sharding_choice import is_sharded
from codea1_agents.train.loop.run_size import RunSize, size_of
from codea1_agents.train.settings.loading import changed, load_training
from codea1_agents.train.settings.modules import models_of
from codea1_agents.train.settings.options import TrainingConfig
from codea1_agents.train.sizing.devices import Devices, devices_here
from codea1_env.errors import UserError

Changes = Mapping[str, Any]

_SMALLER_PRESETS = ("node-lora", "one-gpu-lora", "one-gpu")
"""Presets for fewer or smaller GPUs, the largest models first."""


def require_fit(config: TrainingConfig) -> None:
    """Check that a run can fit this machine. Nothing is checked for another cluster, or for a model of unknown shape.

    Raises:
        UserError: it cannot; the sentence says what to change.
    """
    devices = None if config.cluster.address else devices_here()
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
        host_gb = math.ceil(size.placement.host_bytes / 1e9)
        return f"this run fits {size.devices}{'' if size.devices.host_gb else f' and a host of {host_gb} GB'}"
    remedy = _remedy(config, size.devices)
    return f"this run does not fit {size.devices}: {'; '.join(size.faults)}; {remedy}"


def _remedy(config: TrainingConfig, devices: Devices) -> str:
    for changes in _candidates(config, devices):
        if not size_of(changed(config, changes), devices).faults:
            return f"it fits with {_as_text(changes)}"
    return "; ".join(filter(None, (_why_not_more(config, devices), _fitting_preset(devices))))


def _why_not_more(config: TrainingConfig, devices: Devices) -> str:
    cluster = config.cluster
    models = [each.path for each in models_of(config).values()]
    if not cluster.gpus_per_learner or not devices.n_gpus or is_sharded(cluster.sharding, cluster.learners, models):
        return ""
    return "each learner holds all models whole, so more GPUs of this size do not help"


def _candidates(config: TrainingConfig, devices: Devices) -> Iterator[Changes]:
    """Yield sets of changes, few and mild ones first."""
    every = _single_changes(config, devices)
    new = ({key: value for key, value in each.items() if _present(config, key) != value} for each in every)
    single = [each for each in new if each]
    for size in range(1, len(single) + 1):
        for chosen in combinations(single, size):
            yield {key: value for changes in chosen for key, value in changes.items()}


def _present(config: TrainingConfig, key: str) -> Any:
    """Return the value of a key; None below a table that is not set."""
    found: Any = config
    for part in key.split("."):
        found = getattr(found, part, None)
    return found


def _single_changes(config: TrainingConfig, devices: Devices) -> Iterator[Changes]:
    """Yield changes that save memory, the mildest first; some may change nothing here."""
    models = {name: each for name, each in models_of(config).items() if not getattr(config.agents, name).frozen}
    row = size_of(changed(config, {"training.rows_at_once": 1}), devices).longest_batch
    yield {f"agents.{name}.gradient_checkpointing": True for name in models}
    yield {"training.tokens_at_once": row}
    yield {"training.kl_coeff": 0.0}
    if config.cluster.learners > 1 and config.cluster.sharding == "none":
        yield {"cluster.sharding": "full"}
    yield {f"agents.{name}.lora.rank": 16 for name, each in models.items() if each.lora is None}
    yield _spread(devices.n_gpus)


def _spread(n_gpus: int) -> Changes:
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


def _fitting_preset(devices: Devices) -> str:
    for name in _SMALLER_PRESETS:
        if not size_of(load_training(name), devices).faults:
            return f"the preset {name} fits"
    return f"none of the presets {', '.join(_SMALLER_PRESETS)} fits, either"


def _as_text(changes: Changes) -> str:
    texts = [f"{key}={_as_toml(value)}" for key, value in changes.items()]
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


def _as_toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)  # a count keeps all its digits
