"""The size of a run: the memory of its processes on given devices, and the tokens and seconds of a step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import Any

from codea1_agents.models.shapes import shape_of
from codea1_agents.train.grpo.settings import ModelSettings
from codea1_agents.train.settings.options import TrainingConfig
from codea1_agents.train.settings.run_parts import ROLES, longest, models_of
from codea1_agents.train.sizing.devices import Devices
from codea1_agents.train.sizing.learning import (
    FLOAT,
    MicroBatch,
    Part,
    SizedModule,
    bases_bytes,
    first_learner_parts,
    learner_parts,
    loading_part,
)
from codea1_agents.train.sizing.placement import Placement, Process, placed, with_contexts
from codea1_agents.train.sizing.sampling import VLLM_ROWS, Engine, engines_of, runner_parts
from codea1_agents.train.sizing.timing import MEAN_PROMPT, MEAN_REPLY, RoleWork, StepSeconds, assumptions, step_seconds
from codea1_env.errors import UserError


@dataclass(frozen=True, slots=True)
class RunSize:
    """What a run needs, by arithmetic."""

    devices: Devices
    modules: Mapping[str, SizedModule]
    engines: tuple[Engine, ...]
    """The engines of vLLM of each runner on a GPU."""
    placement: Placement
    work: tuple[RoleWork, ...]
    """For the roles that language models play."""
    seconds: StepSeconds | None
    """Time of a step; None if the devices' speed is unknown, or if an engine does not start."""
    n_checkpoints: int
    """Checkpoints that are on the disk at a time: those that are kept, and one that is being written."""

    @property
    def checkpoint_bytes(self) -> int:
        """Bytes of a checkpoint: float32 weights of all models, or their adapters, and the states of AdamW."""
        return FLOAT * sum(each.with_gradient + 2 * each.trained for each in self.modules.values())

    @property
    def faults(self) -> tuple[str, ...]:
        """Why the run does not fit the devices, as clauses; none: it fits."""
        return tuple(_faults(self.devices, self.placement, self.engines))

    def to_json(self) -> dict[str, Any]:
        """Return what the run needs as plain data."""
        return {
            "devices": asdict(self.devices),
            "fits": not self.faults,
            "faults": list(self.faults),
            "processes": [asdict(each) for each in self.placement.processes],
            "gpus": [self.placement.gpu_bytes(number) for number in range(self.devices.n_gpus)],
            "host_bytes": self.placement.work_bytes,
            "host_bytes_at_start": self.placement.start_bytes,
            "disk_bytes": {"checkpoint": self.checkpoint_bytes, "all": self.n_checkpoints * self.checkpoint_bytes},
            "tokens_per_step": {
                "sampled": sum(each.sampled_tokens for each in self.work),
                "learned": sum(each.learned_tokens for each in self.work),
            },
            "seconds_per_step": None if self.seconds is None else asdict(self.seconds),
            "assumptions": assumptions(self.work),
        }


def _faults(devices: Devices, placement: Placement, engines: Sequence[Engine]) -> Iterator[str]:
    if placement.unplaced and not devices.n_gpus:
        yield "cluster.gpus_per_env_runner or cluster.gpus_per_learner requests a GPU"
        return
    if placement.unplaced:
        yield f"its processes request {sum(each.gpus for each in placement.processes):g} GPUs"
    yield from [each.fault for each in engines if each.fault][:1]
    if devices.gpu is not None:
        needs = {each.kind: each.device_bytes for each in placement.processes}
        for number, held in enumerate(placement.by_gpu):
            kinds = " and a ".join(dict.fromkeys(each.kind for each in held))
            needs[kinds] = max(placement.gpu_bytes(number), needs.get(kinds, 0))
        kinds = max(needs, key=lambda each: (needs[each], each))
        if needs[kinds] / 1e9 > devices.gpu.memory_gb:
            yield f"the GPU of a {kinds} needs {needs[kinds] / 1e9:.1f} GB"
    if devices.host_gb and placement.host_bytes / 1e9 > devices.host_gb:
        needed = placement.host_bytes / 1e9
        yield f"its processes need {needed:.0f} GB of the machine's memory of {devices.host_gb:.0f}"
    if any([each.kind for each in held].count("learner") > 1 for held in placement.by_gpu):
        yield "two learners share a GPU, which NCCL refuses"


def size_of(config: TrainingConfig, devices: Devices) -> RunSize:
    """Return the size of a run on some devices.

    Raises:
        UserError: the settings make no run.
        UnknownShape: a model's shape is unknown here.
    """
    models = models_of(config)
    if all(getattr(config.agents, name).frozen for name in models):
        raise UserError("nothing learns: every model is frozen, or there is none")
    work = tuple(_work(config, models))
    modules = {name: _module(config, name, settings, work) for name, settings in models.items()}
    gpus_per_runner = config.cluster.gpus_per_env_runner
    gpu_bytes = devices.gpu.memory_gb * 1e9 if devices.gpu and gpus_per_runner else 0
    engines = engines_of(list(modules.values()), gpu_bytes, gpus_per_runner)
    placement = placed(with_contexts(_processes(config, list(modules.values()), engines)), devices.n_gpus)
    n_sampling, n_learning, seconds = placement.n_gpus_of("runner"), placement.n_gpus_of("learner"), None
    if devices.gpu and devices.gpu.tflops and n_sampling and n_learning and not any(each.fault for each in engines):
        seconds = step_seconds(
            work,
            modules,
            devices.gpu,
            n_sampling=n_sampling,
            n_learning=n_learning,
            cache_tokens=min((each.cache_tokens for each in engines), default=0),
            overlap=config.rollout.overlap > 0,
        )
    every = config.checkpoints.every or config.run.steps
    kept = config.checkpoints.keep or ceil(config.run.steps / every)
    return RunSize(devices, modules, engines, placement, work, seconds, kept + 1)


def _work(config: TrainingConfig, models: Mapping[str, ModelSettings]) -> Iterator[RoleWork]:
    """Yield what each role that a language model plays samples and learns in a step."""
    rollout, update = config.rollout, config.training
    for role in ROLES:
        module = "shared" if "shared" in models else role
        is_coder = role == "coder"
        group = rollout.n_candidates if is_coder else rollout.n_suites
        n_groups = 1 if is_coder else rollout.n_groups
        if module not in models or not n_groups * group:
            continue
        n_kept = 0 if getattr(config.agents, module).frozen else min(n_groups, 1 if is_coder else rollout.n_kept)
        checkpoints = models[module].gradient_checkpointing
        yield RoleWork(
            role=role,
            module=module,
            prompt=min(MEAN_PROMPT, longest(config, role, "max_prompt_tokens")),
            reply=min(MEAN_REPLY, longest(config, role, "max_tokens")),
            group=group,
            sampled=rollout.problems_per_step * n_groups * group,
            trained=rollout.problems_per_step * n_kept * group,
            epochs=update.epochs_per_step,
            prompt_once=update.prompt_once and (update.packing or not checkpoints),
            longest=longest(config, role, "max_tokens"),
            batches=ceil(rollout.problems_per_step / max(config.cluster.env_runners, 1) / rollout.problems_at_once),
            extra_passes=(update.kl_coeff > 0) + (update.old_log_probs == "learner") + checkpoints,
        )


def _module(config: TrainingConfig, name: str, settings: ModelSettings, work: Sequence[RoleWork]) -> SizedModule:
    shape = shape_of(settings.path)
    roles = ROLES if name == "shared" else (name,)
    replies = {role: longest(config, role, "max_tokens") for role in roles}
    row = max(min(longest(config, role, "max_prompt_tokens") + replies[role], shape.context) for role in roles)
    in_flight = int(settings.engine_options.get("max_num_seqs") or VLLM_ROWS)
    return SizedModule(
        shape=shape,
        settings=replace(
            settings,
            with_reference=config.training.kl_coeff > 0,
            logits_chunk_tokens=config.training.logits_chunk_tokens,
        ),
        batch=_largest_batch(config, row, max(replies.values()), [each for each in work if each.module == name]),
        learns=not getattr(config.agents, name).frozen,
        rows=in_flight if settings.rollout_engine == "vllm" else config.rollout.sampling_batch_size,
        longest=row,
    )


def _largest_batch(config: TrainingConfig, row: int, reply: int, work: Sequence[RoleWork]) -> MicroBatch:
    """Return the largest micro-batch that the settings allow: rows of the longest length, or as many tokens.

    Replies that share the computation of their prompt may have long prompts and be short, so that they read many keys.
    """
    update = config.training
    n_batches = update.minibatches_per_epoch * max(config.cluster.learners, 1)
    trained = ceil(sum(each.trained for each in work) / n_batches)
    rows = max(1, min(trained, update.micro_batch_size or trained))
    tokens = max(row, min(rows * row, update.micro_batch_tokens or rows * row))
    group = max((each.group for each in work if each.prompt_once), default=1)
    if update.packing:
        return MicroBatch(tokens, min(tokens, rows * reply), tokens, tokens**2)
    width = min(row, tokens // 2) if rows > 1 else 0
    return MicroBatch(tokens, min(tokens, rows * reply), min(rows * row, group * tokens), tokens * width)


def _processes(config: TrainingConfig, modules: Sequence[SizedModule], engines: Sequence[Engine]) -> Iterator[Process]:
    """Yield all processes in the order in which they start."""
    cluster, gpus = config.cluster, config.cluster.gpus_per_env_runner
    sleeps = cluster.placement == "colocated"
    in_learner = not (cluster.env_runners or cluster.learners) and all(
        each.settings.shares_base and each.settings.base_dtype == each.settings.sampling_dtype for each in modules
    )
    parts = runner_parts(modules, engines, sleeps=sleeps, in_learner=in_learner)
    for number in range(max(cluster.env_runners, 1)):
        yield Process("runner", number, gpus, parts, is_in_driver=not cluster.env_runners, sleeps=sleeps)
    if cluster.env_runners and not any(each.is_vllm for each in modules):  # RLlib keeps a runner in the driver, too
        copies = Part("weights", bases_bytes(modules, lambda each: each.sampling_weights))
        yield Process("driver", 0, gpus, (copies,), is_in_driver=True)
    if any(each.learns for each in modules):
        parts, gpus = (*learner_parts(modules, cluster), loading_part(modules, cluster)), cluster.gpus_per_learner
        for number in range(max(cluster.learners, 1)):
            own = parts if number else (*parts, *first_learner_parts(modules, cluster))
            yield Process("learner", number, gpus, own, is_in_driver=not cluster.learners, sleeps=sleeps)
