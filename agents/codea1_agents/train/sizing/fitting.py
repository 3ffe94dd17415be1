"""Refuses a run that does not fit its devices, finds the settings with which it does, and proposes first ones.

Proposed are the settings with which a model trains on this machine, for the lengths that were seen of it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import combinations
from math import ceil
from typing import Any

from codea1_agents.models.model_facts import ModelFacts
from codea1_agents.models.shapes import UnknownShape
from codea1_agents.train.settings.loading import apply_changes, load_training
from codea1_agents.train.settings.options import TrainingConfig
from codea1_agents.train.settings.run_parts import ROLES
from codea1_agents.train.sizing.devices import Devices, devices_here, processor_has_bfloat16
from codea1_agents.train.sizing.run_size import RunSize, size_of
from codea1_env.agent import Role
from codea1_env.errors import UserError, install_line

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
            if not size_of(apply_changes(config, changes), size.devices).faults:
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
    value: Any = config
    for part in key.split("."):
        value = getattr(value, part, None)
    return value


_PROMPT_STEP, _REPLY_STEP = 128, 64
"""Limits are rounded up to multiples of these."""
_MANY_CUT = 0.25
"""From this share of cut replies on, the limit of the trial stays: shorter ones would tell nothing."""
_ON_GPUS, _ON_PROCESSORS, _OF_TINY = ("node-lora", "one-gpu-lora"), ("laptop",), ("code-a1",)
_OF_OPTIONS = ("agents.base", "agents.coder.model", "agents.tester.model")
"""Settings that a command names by options."""
_TINY = 10_000_000
"""Models of fewer parameters are trained whole, on a processor."""
_CHECKPOINTS = {f"agents.{role}.gradient_checkpointing": True for role in ROLES}
_BATCHES: tuple[Mapping[str, Any], ...] = (
    {},
    {"rollout.sampling_batch_size": 32, "training.micro_batch_tokens": 2048},
    *({"rollout.sampling_batch_size": n, "training.micro_batch_tokens": 64 * n, **_CHECKPOINTS} for n in (16, 8)),
)
"""Changes of a preset, the fastest first."""
_OWN_GB = 3.0
"""What the system, Python, torch and Ray take of the machine's memory: assumed."""


@dataclass(frozen=True, slots=True)
class SeenLengths:
    """Lengths that were seen in one role, in tokens."""

    prompts: tuple[int, ...] = ()
    """Of a tester: with the problem's solution as the program."""
    replies: tuple[int, ...] = ()
    """Of replies that ended by themselves."""
    n_cut: int = 0
    """Replies that the limit ended."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Proposed limits of one role, in tokens."""

    prompt: int
    n_prompts_cut: int
    """Prompts among those seen that are longer."""
    reply: int
    n_replies_cut: int


@dataclass(frozen=True, slots=True)
class Proposal:
    """Settings for a training of one model in both roles."""

    preset: str
    lengths: Mapping[Role, Lengths]
    changes: Mapping[str, Any]
    """Settings that replace those of the preset."""
    size: RunSize | None
    """None: the arithmetic does not know the model's architecture, or this machine's GPUs."""
    needs: str = ""
    """Line that installs what the preset needs and is not here; empty: nothing."""

    def command(self, model: str, problems: str) -> str:
        """Return the line for a shell that begins the training."""
        words = ["codea1", "train", self.preset]
        words += ["--base", model] if load_training(self.preset).agents.base else ["--coder", model, "--tester", model]
        words += ["--problems", problems]
        for key, value in self.changes.items():
            if key in _OF_OPTIONS:
                continue
            words += ["--set", f"{key}={str(value).lower() if isinstance(value, bool) else value}"]
        return shlex.join(words)


def propose(
    model: str,
    facts: ModelFacts,
    seen: Mapping[Role, SeenLengths],
    devices: Devices | None,
    *,
    limit: int,
    prompts: str,
) -> Proposal:
    """Return the first settings that fit: the presets of the machine's kind, with ever smaller batches.

    If none fit, the last of them; the faults of its size say why.

    Args:
        model: folder, GGUF file or hub id.
        facts: about the model.
        seen: by role.
        devices: of this machine; None: they cannot be examined.
        limit: longest reply of the trial, in tokens.
        prompts: the wording.
    """
    lengths = _lengths(seen, limit, facts.context)
    presets = _ON_GPUS if devices is not None and devices.gpu is not None else _ON_PROCESSORS
    if facts.n_parameters < _TINY:
        presets = _OF_TINY
    choices = [(preset, batches) for preset in presets for batches in _BATCHES]
    for preset, batches in choices:
        base = load_training(preset)
        every = {**_changes(base, model, lengths, prompts), **batches}
        changes = {key: value for key, value in every.items() if present_value(base, key) != value}
        proposal = Proposal(preset, lengths, changes, _size(apply_changes(base, changes), devices), _missing(base))
        if proposal.size is None or not proposal.size.faults:
            break
    return proposal


def _changes(base: TrainingConfig, model: str, lengths: Mapping[Role, Lengths], prompts: str) -> dict[str, Any]:
    changes: dict[str, Any] = {"rollout.prompts": prompts}
    if base.agents.base:
        changes["agents.base"] = model
    for role in ROLES:
        own: dict[str, Any] = {} if base.agents.base else {"model": model}
        own |= {"max_tokens": lengths[role].reply, "max_prompt_tokens": lengths[role].prompt}
        if getattr(base.agents, role).rollout_engine == "vllm":
            own["engine_options.max_model_len"] = max(each.prompt + each.reply for each in lengths.values())
        elif getattr(base.agents, role).lora and processor_has_bfloat16():
            own |= dict.fromkeys(("autocast", "sampling_dtype", "base_dtype"), "bfloat16")
        changes |= {f"agents.{role}.{name}": value for name, value in own.items()}
    return changes


def _size(config: TrainingConfig, devices: Devices | None) -> RunSize | None:
    if devices is None:
        return None
    host_gb = max(1.0, devices.host_gb - _OWN_GB) if devices.host_gb else 0.0  # 0: unknown
    try:
        return size_of(config, replace(devices, host_gb=host_gb))
    except UnknownShape:
        return None


def _missing(config: TrainingConfig) -> str:
    packages = {"ray": "rllib", "peft": "lora"}
    if config.agents.coder.rollout_engine == "vllm":
        packages["vllm"] = "vllm"
    extras = [extra for package, extra in packages.items() if find_spec(package) is None]
    return install_line(f"codea1-env[{','.join(extras)}]") if extras else ""


def _lengths(seen: Mapping[Role, SeenLengths], limit: int, context: int | None) -> dict[Role, Lengths]:
    """Return limits that hold what was seen, as far as the context allows.

    A tester's prompt holds a program, which in training may be as long as a reply of the coder.
    """
    lengths: dict[Role, Lengths] = {}
    longest_program = 0
    for role in ROLES:
        prompts, replies, n_cut = seen[role].prompts, seen[role].replies, seen[role].n_cut
        many_cut = n_cut >= _MANY_CUT * (len(replies) + n_cut)
        reply = limit if many_cut else min(limit, _round_up(max(replies), _REPLY_STEP))
        prompt = _round_up(max(prompts, default=0) + longest_program, _PROMPT_STEP)
        if context is not None:
            prompt = max(1, min(prompt, context - reply))
        n_replies_cut = n_cut + sum(each > reply for each in replies)
        lengths[role] = Lengths(prompt, sum(each > prompt for each in prompts), reply, n_replies_cut)
        longest_program = reply
    return lengths


def _round_up(length: int, step: int) -> int:
    return max(step, ceil(length / step) * step)
