"""The size of a run: the memory of its processes on given devices, and the tokens and seconds of a step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from math import ceil

from codea1_agents.models.shapes import ModelShape, shape_of
from codea1_agents.train.grpo.model_settings import ModelSettings
from codea1_agents.train.grpo.sharding_choice import is_sharded
from codea1_agents.train.settings.modules import ROLES, longest, models_of
from codea1_agents.train.settings.options import TrainingConfig
from codea1_agents.train.sizing.devices import Devices
from codea1_agents.train.sizing.learning import LearnedModule, MicroBatch, Part, learner_parts
from codea1_agents.train.sizing.placement import Placement, Process, placed
from codea1_agents.train.sizing.sampling import VLLM_ROWS, RunnerMemory, SampledModule, runner_memory
from codea1_agents.train.sizing.timing import MEAN_PROMPT, MEAN_REPLY, RoleWork, StepSeconds, step_seconds


@dataclass(frozen=True, slots=True)
class RunSize:
    """What a run needs, by arithmetic."""

    devices: Devices
    placement: Placement
    work: tuple[RoleWork, ...]
    """Of the roles that language models play."""
    seconds: StepSeconds | None
    """Of a step; None: the speed of the devices is unknown, or an engine does not start."""
    longest_batch: int
    """Tokens of a learner's largest micro-batch."""
    cache_tokens: int
    """Tokens in the cache of the smallest engine of vLLM on a GPU; 0: there is none."""
    engine_fault: str
    """Why an engine does not start; empty: all do."""

    @property
    def tokens(self) -> int:
        """Tokens that a step samples."""
        return sum(each.sampled_tokens for each in self.work)

    @property
    def faults(self) -> tuple[str, ...]:
        """Why the run does not fit the devices, as clauses; none: it fits."""
        if not self.devices.n_gpus and self.placement.unplaced:
            return ("cluster.gpus_per_env_runner or cluster.gpus_per_learner requests a GPU",)
        found = (self._missing_gpus(), self.engine_fault, self._full_gpu(), self._full_host(), self._shared_learners())
        return tuple(filter(None, found))

    def _missing_gpus(self) -> str:
        if not self.placement.unplaced:
            return ""
        return f"its processes request {sum(each.gpus for each in self.placement.processes):g} GPUs"

    def _full_gpu(self) -> str:
        gpu = self.devices.gpu
        if gpu is None:
            return ""
        together = [
            (self.placement.gpu_bytes(number), " and a ".join(dict.fromkeys(each.kind for each in held)))
            for number, held in enumerate(self.placement.by_gpu)
        ]
        alone = [(each.device_bytes, each.kind) for each in self.placement.processes]
        most, kinds = max([*alone, *together])
        needed = most / 1e9
        return f"the GPU of a {kinds} needs {needed:.1f} GB" if needed > gpu.memory_gb else ""

    def _full_host(self) -> str:
        needed = self.placement.host_bytes / 1e9
        if not self.devices.host_gb or needed <= self.devices.host_gb:
            return ""
        return f"its processes need {needed:.0f} GB of the machine's memory of {self.devices.host_gb:.0f}"

    def _shared_learners(self) -> str:
        for held in self.placement.by_gpu:
            if sum(each.kind == "learner" for each in held) > 1:
                return "two learners share a GPU, which NCCL refuses"
        return ""


def size_of(config: TrainingConfig, devices: Devices) -> RunSize:
    """Return the size of a run on some devices.

    Raises:
        UserError: the settings make no run.
        UnknownShape: a model's shape is unknown here.
    """
    models = models_of(config)
    shapes = {module: shape_of(settings.path) for module, settings in models.items()}
    work = _work(config, models)
    learned = {name: _learned(config, name, models[name], shapes[name], work) for name in models}
    sampled = {name: _sampled(config, name, models[name], shapes[name]) for name in models}
    gpu_bytes = devices.gpu.memory_gb * 1e9 if devices.gpu and config.cluster.gpus_per_env_runner else 0
    runner = runner_memory(list(sampled.values()), gpu_bytes, config.cluster.gpus_per_env_runner)
    placement = placed(_processes(config, runner, list(learned.values()), list(sampled.values())), devices.n_gpus)
    return RunSize(
        devices,
        placement,
        tuple(work.values()),
        None if runner.fault else _seconds(config, work, sampled, learned, runner.cache_tokens, placement, devices),
        max((each.batch.tokens for each in learned.values() if each.learns), default=0),
        runner.cache_tokens,
        runner.fault,
    )


def _module_of(role: str, models: Collection[str]) -> str:
    return "shared" if "shared" in models else role


def _work(config: TrainingConfig, models: Mapping[str, ModelSettings]) -> dict[str, RoleWork]:
    """Return what each role that a language model plays samples and learns in a step."""
    rollout = config.rollout
    per_problem = {"coder": rollout.n_candidates, "tester": rollout.n_groups * rollout.n_suites}
    groups = {"coder": 1, "tester": min(rollout.n_kept, rollout.n_groups)}
    found = {}
    for role in ROLES:
        module = _module_of(role, models)
        if module not in models or not per_problem[role]:
            continue
        group = rollout.n_candidates if role == "coder" else rollout.n_suites
        found[role] = RoleWork(
            role=role,
            sampled=rollout.problems_per_step * per_problem[role],
            trained=0 if _is_frozen(config, module) else rollout.problems_per_step * groups[role] * group,
            group=group,
            prompt=min(MEAN_PROMPT, longest(config, role, "max_prompt_tokens")),
            reply=min(MEAN_REPLY, longest(config, role, "max_tokens")),
            epochs=config.training.epochs_per_step,
            prompt_once=_computes_prompts_once(config, models[module]),
            extra_passes=_extra_passes(config, models[module]),
        )
    return found


def _is_frozen(config: TrainingConfig, module: str) -> bool:
    return bool(getattr(config.agents, module).frozen)


def _computes_prompts_once(config: TrainingConfig, settings: ModelSettings) -> bool:
    return config.training.prompt_once and not settings.gradient_checkpointing


def _extra_passes(config: TrainingConfig, settings: ModelSettings) -> int:
    update = config.training
    return (update.kl_coeff > 0) + (update.old_log_probs == "learner") + settings.gradient_checkpointing


def _roles_of(module: str) -> tuple[str, ...]:
    return ROLES if module == "shared" else (module,)


def _longest_row(config: TrainingConfig, module: str, shape: ModelShape) -> int:
    """Return the tokens of the longest prompt and reply together."""
    return max(
        min(longest(config, role, "max_prompt_tokens") + longest(config, role, "max_tokens"), shape.context)
        for role in _roles_of(module)
    )


def _learned(
    config: TrainingConfig, module: str, settings: ModelSettings, shape: ModelShape, work: Mapping[str, RoleWork]
) -> LearnedModule:
    return LearnedModule(
        shape=shape,
        settings=settings,
        learns=not _is_frozen(config, module),
        has_reference=config.training.kl_coeff > 0,
        batch=_largest_batch(config, module, settings, shape, work),
        logits_at_once=config.training.logits_at_once,
    )


def _largest_batch(
    config: TrainingConfig, module: str, settings: ModelSettings, shape: ModelShape, work: Mapping[str, RoleWork]
) -> MicroBatch:
    """Return the largest micro-batch that the settings allow: rows of the longest length, or as many tokens.

    Replies that share the computation of their prompt may have long prompts and be short, so that they read many keys.
    """
    mine = [work[role] for role in _roles_of(module) if role in work]
    update, row = config.training, _longest_row(config, module, shape)
    rows = _rows_at_once(config, mine)
    tokens = max(row, min(rows * row, update.tokens_at_once or rows * row))
    reply = max(longest(config, role, "max_tokens") for role in _roles_of(module))
    group = max((each.group for each in mine), default=1) if _computes_prompts_once(config, settings) else 1
    width = min(row, tokens // 2) if rows > 1 else 0
    return MicroBatch(tokens, min(tokens, rows * reply), min(rows * row, group * tokens), tokens * width)


def _rows_at_once(config: TrainingConfig, work: Iterable[RoleWork]) -> int:
    update = config.training
    trained = sum(each.trained for each in work)
    rows = ceil(trained / (update.minibatches_per_epoch * max(config.cluster.learners, 1)))
    return max(1, min(rows, update.rows_at_once or rows))


def _sampled(config: TrainingConfig, module: str, settings: ModelSettings, shape: ModelShape) -> SampledModule:
    is_vllm = settings.rollout_engine == "vllm"
    in_flight = settings.engine_options.get("max_num_seqs") or VLLM_ROWS
    rows = int(in_flight) if is_vllm else config.rollout.rows_sampled_at_once
    return SampledModule(shape, settings, _longest_row(config, module, shape), rows)


def _processes(
    config: TrainingConfig, runner: RunnerMemory, learned: list[LearnedModule], sampled: list[SampledModule]
) -> list[Process]:
    """Return all processes in the order in which they start."""
    cluster = config.cluster
    n_runners, n_learners = cluster.env_runners, cluster.learners
    is_colocated = cluster.placement == "colocated"
    found = [_runner(config, number, runner, sampled) for number in range(max(n_runners, 1))]
    if n_runners and not any(each.is_vllm for each in sampled):  # RLlib keeps a runner in the driver, too
        copies = (Part("weights", sum(each.weights for each in sampled)),)
        found.append(Process("driver", 0, cluster.gpus_per_env_runner, True, copies))
    if any(each.learns for each in learned):
        parts = learner_parts(
            learned,
            n_learners=n_learners,
            is_on_gpu=cluster.gpus_per_learner > 0,
            is_offloaded=cluster.offload_optimizer,
            is_on_host=cluster.offload_parameters,
            is_sharded=is_sharded(cluster.sharding, n_learners, [each.settings.path for each in learned]),
        )
        on_host = tuple(each for each in parts if each.is_on_host)
        on_device = tuple(each for each in parts if not each.is_on_host)
        kept = sum(each.n_bytes for each in on_device if each.is_kept) if is_colocated else None
        if cluster.offload_optimizer and cluster.gpus_per_learner > 0:
            on_host += tuple(each for each in on_device if each.name == "AdamW")
        found += [
            Process("learner", number, cluster.gpus_per_learner, not n_learners, on_device, on_host, idle_bytes=kept)
            for number in range(max(n_learners, 1))
        ]
    return found


def _runner(config: TrainingConfig, number: int, memory: RunnerMemory, sampled: Iterable[SampledModule]) -> Process:
    """Return one runner; while it sleeps, the weights of its engines are on the host."""
    cluster, on_host, idle_bytes = config.cluster, memory.on_host, None
    if cluster.placement == "colocated":
        on_host = (*on_host, Part("weights of sleeping engines", sum(each.weights for each in sampled)))
        idle_bytes = memory.asleep
    gpus, is_in_driver = cluster.gpus_per_env_runner, not cluster.env_runners
    return Process("runner", number, gpus, is_in_driver, memory.on_device, on_host, idle_bytes)


def _seconds(
    config: TrainingConfig,
    work: Mapping[str, RoleWork],
    sampled: Mapping[str, SampledModule],
    learned: Mapping[str, LearnedModule],
    cache_tokens: int,
    placement: Placement,
    devices: Devices,
) -> StepSeconds | None:
    n_sampling, n_learning = placement.n_gpus_of("runner"), placement.n_gpus_of("learner")
    if devices.gpu is None or not devices.gpu.tflops or not n_sampling or not n_learning:
        return None
    modules = [_module_of(role, sampled) for role in work]
    samplers = [_in_cache(sampled[name], each, cache_tokens) for name, each in zip(modules, work.values(), strict=True)]
    return step_seconds(
        list(work.values()),
        samplers,
        [learned[name] for name in modules],
        devices.gpu,
        n_sampling=n_sampling,
        n_learning=n_learning,
        overlap=bool(config.rollout.overlap),
    )


def _in_cache(module: SampledModule, work: RoleWork, cache_tokens: int) -> SampledModule:
    """Return the module with as many rows in flight as fit an engine's cache at their mean length."""
    if not module.is_vllm or not cache_tokens:
        return module
    return replace(module, rows=max(1, min(module.rows, cache_tokens // (work.prompt + work.reply))))
