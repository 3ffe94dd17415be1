"""The size of a run: the memory of its processes on given devices, and the tokens and seconds of a step.

Processes are placed on GPUs as Ray does. Seconds follow from shapes and the figures of GPUs; lengths and shares of the
peak are assumptions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import Any, Literal

from codea1_agents.models.shapes import shape_of
from codea1_agents.train.grpo.settings import ModelSettings
from codea1_agents.train.settings.options import TrainingConfig
from codea1_agents.train.settings.run_parts import ROLES, longest, models_of
from codea1_agents.train.sizing.devices import Devices, Gpu
from codea1_agents.train.sizing.memory import (
    CONTEXT_BYTES,
    FLOAT,
    VLLM_ROWS,
    Engine,
    MicroBatch,
    Part,
    SizedModule,
    bases_bytes,
    engines_of,
    first_learner_parts,
    learner_parts,
    loading_part,
    runner_parts,
)
from codea1_env.errors import UserError

CONTEXT = Part("CUDA context", CONTEXT_BYTES, CONTEXT_BYTES)
"""It stays while a process sleeps."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process, or a part of the driver."""

    kind: str
    """`runner`, `learner` or `driver`."""
    number: int
    gpus: float
    """GPUs that it requests; below 1: a share of one; 0: all its parts are on the host."""
    parts: tuple[Part, ...]
    is_in_driver: bool = False
    """Ray does not place it: it uses the first GPU, whatever else does."""
    sleeps: bool = False
    """Whether it leaves its GPU, but for idle bytes, to processes of another kind while they work."""
    on: tuple[int, ...] = ()
    """Numbers of its GPUs, once it is placed; none: there was no GPU for it, or it requests none."""

    @property
    def device_bytes(self) -> int:
        """Bytes on its GPU."""
        return sum(each.n_bytes for each in self.parts if self.gpus and not each.is_on_host)

    def host_bytes(self, when: Literal["start", "later"]) -> int:
        """Return the bytes on the host while processes start, or later, while the run works."""
        on_host = (each for each in self.parts if each.is_on_host or not self.gpus)
        return sum(each.n_bytes for each in on_host if each.when in ("always", when))

    def bytes_while(self, working: str) -> int:
        """Return the bytes on its GPU while processes of a kind work."""
        if self.sleeps and working != self.kind:
            return sum(each.idle_bytes for each in self.parts if not each.is_on_host)
        return self.device_bytes


@dataclass(frozen=True, slots=True)
class Placement:
    """Processes on some GPUs."""

    processes: tuple[Process, ...]
    n_gpus: int

    @property
    def by_gpu(self) -> tuple[tuple[Process, ...], ...]:
        """Processes of each GPU."""
        return tuple(tuple(each for each in self.processes if n in each.on) for n in range(self.n_gpus))

    @property
    def unplaced(self) -> tuple[Process, ...]:
        """Processes for which no GPU is left."""
        return tuple(each for each in self.processes if each.gpus and not each.on)

    @property
    def host_bytes(self) -> int:
        """Most bytes of all processes on the host at a time: while they start, or later."""
        return max(self.start_bytes, self.work_bytes)

    @property
    def start_bytes(self) -> int:
        """Bytes of all processes on the host while they start."""
        return sum(each.host_bytes("start") for each in self.processes)

    @property
    def work_bytes(self) -> int:
        """The same while they work."""
        return sum(each.host_bytes("later") for each in self.processes)

    def gpu_bytes(self, number: int) -> int:
        """Return the most bytes on one GPU at a time."""
        held = self.by_gpu[number]
        return max((sum(each.bytes_while(working.kind) for each in held) for working in held), default=0)

    def n_gpus_of(self, kind: str) -> int:
        """Return on how many GPUs there are processes of a kind."""
        return len({number for each in self.processes if each.kind == kind for number in each.on})


def with_contexts(processes: Iterable[Process]) -> Iterator[Process]:
    """Yield processes, those on a GPU with `CONTEXT`; the parts of the driver share one."""
    is_driver_on_gpu = False
    for each in processes:
        if not each.gpus or (each.is_in_driver and is_driver_on_gpu):
            yield each
            continue
        is_driver_on_gpu |= each.is_in_driver
        yield replace(each, parts=(*each.parts, CONTEXT))


def place(processes: Iterable[Process], n_gpus: int) -> Placement:
    """Return where Ray puts processes that start in this order.

    A process that requests a share of a GPU gets the fullest one that has such a share left.
    """
    free = [1.0] * n_gpus
    placed = []
    for process in processes:
        placed.append(replace(process, on=_numbers(process, free)))
        for number in placed[-1].on if not process.is_in_driver else ():
            free[number] -= min(process.gpus, 1.0)
    return Placement(tuple(placed), n_gpus)


def _numbers(process: Process, free: Sequence[float]) -> tuple[int, ...]:
    """Return the numbers of the GPUs that a process gets; none: they do not suffice, or it requests none."""
    if not process.gpus or process.is_in_driver:
        return (0,) if process.gpus and free else ()
    wanted = max(1, round(process.gpus))
    possible = [number for number, left in enumerate(free) if left >= min(process.gpus, 1.0) - 1e-9]
    fullest = sorted(possible, key=lambda number: free[number])
    return tuple(sorted(fullest[:wanted])) if len(fullest) >= wanted else ()


LEARNS_AT, SAMPLES_AT = 0.35, 0.5
"""Share of a GPU's peak that learning and long prompts reach, and of its bandwidth that sampling reaches: assumed."""
MEAN_PROMPT, MEAN_REPLY = 700, 500
"""Mean tokens of a prompt and of a reply: assumed."""
TOKEN_S = 0.006
"""Least seconds of a token of the few replies that are still being sampled at the end of a batch: assumed."""
HANDOVER_S = 1.3, 2.0
"""Least and most seconds per GB of weights that the driver hands over (docs/experiments/internet-scale/report.md)."""


@dataclass(frozen=True, slots=True)
class RoleWork:
    """What one role samples and learns in a step."""

    role: str
    module: str
    """Name of the module that plays it."""
    prompt: int
    reply: int
    """Mean tokens of a prompt and of a reply: the assumed ones, or fewer if the settings allow fewer."""
    group: int
    """Replies of a group; they share their prompt, which samplers compute once."""
    sampled: int
    """Replies."""
    trained: int
    """Replies that train the role's module; 0: it does not learn."""
    epochs: int
    prompt_once: bool
    """Whether a learner computes the prompt of a group once."""
    longest: int = 0
    """Most tokens of a reply."""
    batches: int = 1
    """How often a runner samples in a step, each time until its longest reply ends."""
    extra_passes: int = 0
    """Forward passes in learning besides the one with a gradient: for the reference, for the old log-probabilities, for
    activations that are computed again."""

    @property
    def sampled_tokens(self) -> int:
        """Tokens of the replies."""
        return self.sampled * self.reply

    @property
    def prefilled_tokens(self) -> int:
        """Tokens of the prompts that a sampler computes, those of a group once."""
        return -(-self.sampled // self.group) * self.prompt

    @property
    def learned_tokens(self) -> int:
        """Tokens that the learners compute, prompts included."""
        prompts = -(-self.trained // self.group) if self.prompt_once else self.trained
        return self.epochs * (prompts * self.prompt + self.trained * self.reply)


@dataclass(frozen=True, slots=True)
class StepSeconds:
    """Seconds of a step, by part."""

    decode: float
    prefill: float
    learn: float
    total: float
    """The whole step: less than the sum of its parts if runners sample while learners learn. Without what follows."""
    tail: float
    """Of the last reply of each batch, if it is as long as allowed: while it is sampled alone."""
    handover: tuple[float, float]
    """Least and most of the hand-over of weights."""

    @property
    def least(self) -> float:
        """The step if no reply is longer than the mean."""
        return self.total + self.handover[0]

    @property
    def most(self) -> float:
        """The step if each batch has a reply of the most tokens allowed."""
        return self.total + self.tail + self.handover[1]


def assumptions(work: Sequence[RoleWork]) -> dict[str, Any]:
    """Return what the times assume, and no run has measured, as plain data; lengths by role."""
    lengths = {name: {each.role: getattr(each, name) for each in work} for name in ("prompt", "reply")}
    handover = dict(zip(("least", "most"), HANDOVER_S, strict=True))
    return {"learns_at": LEARNS_AT, "samples_at": SAMPLES_AT, "token_s": TOKEN_S, "handover_s": handover, **lengths}


def step_seconds(
    work: Sequence[RoleWork],
    modules: Mapping[str, SizedModule],
    gpu: Gpu,
    *,
    n_sampling: int,
    n_learning: int,
    cache_tokens: int = 0,
    overlap: bool = False,
) -> StepSeconds:
    """Return the seconds of a step.

    Args:
        work: by role.
        modules: by name.
        gpu: with figures of speed.
        n_sampling: GPUs that sample.
        n_learning: GPUs that learn.
        cache_tokens: tokens in the cache of the smallest engine of vLLM; 0: none bounds the rows in flight.
        overlap: whether runners sample while learners learn.
    """
    operations, n_bytes = gpu.tflops * 1e12 * LEARNS_AT, gpu.bandwidth_tb * 1e12 * SAMPLES_AT
    decode = sum(_decoded_bytes(each, modules[each.module], cache_tokens) for each in work) / n_bytes / n_sampling
    prefilled = sum(each.prefilled_tokens * 2 * modules[each.module].shape.parameters for each in work)
    prefill = prefilled / operations / n_sampling
    learn = sum(_operations(each, modules[each.module]) for each in work) / operations / n_learning
    total = max(decode + prefill, learn) if overlap else decode + prefill + learn
    tails = (
        max(TOKEN_S, modules[role.module].sampling_weights / n_bytes) * role.batches * max(0, role.longest - role.reply)
        for role in work
    )
    # Of modules with adapters, these only go to the runners, in float32.
    handed_over = (
        FLOAT * each.with_gradient if each.settings.lora else each.sampling_weights for each in modules.values()
    )
    gigabytes = sum(handed_over) / 1e9
    return StepSeconds(
        decode, prefill, learn, total, sum(tails), (HANDOVER_S[0] * gigabytes, HANDOVER_S[1] * gigabytes)
    )


def _decoded_bytes(work: RoleWork, module: SizedModule, cache_tokens: int) -> float:
    """Return the bytes that sampling reads: at each token the weights, and the cache of all rows in flight."""
    rows = min(module.rows, work.sampled)
    if module.is_vllm and cache_tokens:
        rows = min(rows, cache_tokens // (work.prompt + work.reply))
    rows = max(1, rows)
    read = module.sampling_weights + rows * (work.prompt + work.reply / 2) * module.token_bytes
    return work.sampled / rows * work.reply * read


def _operations(work: RoleWork, module: SizedModule) -> int:
    """Return the operations of learning: forward 2 and backward 4 per parameter and token, 2 per extra pass.

    With adapters, the backward pass computes the gradient of few weights and takes 2.
    """
    backward = 2 if module.settings.lora else 4
    return work.learned_tokens * (2 + backward + 2 * work.extra_passes) * module.shape.parameters


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
    placement = place(with_contexts(_processes(config, list(modules.values()), engines)), devices.n_gpus)
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
            sampled=rollout.problems_per_step * n_groups * group * rollout.turns,  # if no trajectory is over before
            trained=rollout.problems_per_step * n_kept * group * rollout.turns,
            epochs=update.epochs_per_step,
            prompt_once=update.prompt_once and (update.packing or not checkpoints),
            longest=longest(config, role, "max_tokens"),
            batches=rollout.turns
            * ceil(rollout.problems_per_step / max(config.cluster.env_runners, 1) / rollout.problems_at_once),
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
