"""The memory of learners and runners, by part.

The bytes of activations follow what autograd keeps of Qwen2 and Llama in `transformers` with PyTorch's attention. They
were derived from the allocations of a CPU, which a test and `benchmarks/training_arithmetic.py` hold them against. An
engine of vLLM uses its share of a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from codea1_agents.models.shapes import ModelShape
from codea1_agents.train.grpo.settings import ModelSettings, engine_share, is_sharded
from codea1_agents.train.settings.options import ClusterOptions

FLOAT = 4
"""Bytes of a float32, in which a learner keeps weights, gradients and the states of AdamW."""
CONTEXT_BYTES = 5 * 10**8
"""What CUDA itself takes of a GPU in each process: an assumption."""
_LOGIT_BYTES = 16
"""Four float32 per logit exist at the same time in the backward pass."""
_FROZEN_LOGIT_BYTES = 12
"""Three under an output layer without gradients, all in the forward pass."""
_NUMBER_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """The largest micro-batch of a module."""

    tokens: int
    """Tokens that are computed, with padding."""
    replies: int
    """Tokens of replies among them."""
    keys: int
    """Tokens whose keys and values the attention reads: a prompt counts for each of its replies."""
    mask: int = 0
    """Pairs of tokens in the mask of the attention; 0: rows of one length need none."""


@dataclass(frozen=True, slots=True)
class SizedModule:
    """A model of a run, as learners and runners hold it."""

    shape: ModelShape
    settings: ModelSettings
    batch: MicroBatch
    """The largest that a learner computes."""
    learns: bool = True
    rows: int = 1
    """Responses that a runner samples at a time."""
    longest: int = 0
    """Tokens of the longest prompt and reply together."""

    @property
    def with_gradient(self) -> int:
        """Number of parameters that can have a gradient: those of the adapters, or all."""
        lora = self.settings.lora
        return self.shape.adapter_parameters(lora.rank, lora.target_modules) if lora else self.shape.parameters

    @property
    def trained(self) -> int:
        """Number of trained parameters."""
        return self.with_gradient if self.learns else 0

    @property
    def adapters(self) -> int:
        """Number of parameters of its adapters."""
        return self.with_gradient if self.settings.lora else 0

    @property
    def held(self) -> int:
        """Number of parameters of a learner, adapters included."""
        return self.shape.parameters + self.adapters

    @property
    def base_bytes(self) -> int:
        """Bytes of a learner's weights without adapters."""
        return _NUMBER_BYTES[self.settings.base_dtype] * self.shape.parameters

    @property
    def compute_bytes(self) -> int:
        """Bytes of a number in a learner's forward pass."""
        return _NUMBER_BYTES[self.settings.autocast or "float32"]

    @property
    def sampling_bytes(self) -> int:
        """Bytes of a number of a runner's weights and cache."""
        return _NUMBER_BYTES[self.settings.sampling_dtype]

    @property
    def sampling_weights(self) -> int:
        """Bytes of a runner's weights."""
        return self.sampling_bytes * self.shape.parameters

    @property
    def token_bytes(self) -> int:
        """Bytes of one token in a runner's cache."""
        return self.shape.cache_bytes(self.sampling_bytes)

    @property
    def is_vllm(self) -> bool:
        """Whether vLLM samples."""
        return self.settings.rollout_engine == "vllm"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the memory of a process."""

    name: str
    n_bytes: int
    idle_bytes: int = 0
    """Bytes that stay on the GPU while processes of another kind work there."""
    is_on_host: bool = False
    """Whether it is in the host's memory even if a GPU computes."""
    when: Literal["always", "start", "later"] = "always"
    """`start`: only until all processes have started; `later`: only after that."""


def bases_bytes(modules: Sequence[SizedModule], bytes_of: Callable[[SizedModule], int]) -> int:
    """Return the bytes of the weights without adapters; those that modules have in common count once.

    Args:
        modules: of one process.
        bytes_of: the bytes of one module's.
    """
    shared = {id(each) for each in modules if each.settings.shares_base}
    own = sum(bytes_of(each) for each in modules if id(each) not in shared)
    return own + max((bytes_of(each) for each in modules if id(each) in shared), default=0)


def learner_parts(modules: Sequence[SizedModule], cluster: ClusterOptions) -> tuple[Part, ...]:
    """Return the memory of one learner, which trains all modules one after the other.

    Args:
        modules: all modules of the run; at least one learns.
        cluster: decides what a learner shards, and what it leaves to the host.
    """
    sharded = is_sharded(cluster.sharding, cluster.learners, [each.settings for each in modules])
    n_parts = max(cluster.learners, 1) if sharded else 1
    learning = [each for each in modules if each.learns]
    on_host = cluster.offload_parameters
    steps_on_gpu = cluster.gpus_per_learner > 0 and not on_host

    def most_bytes(module: SizedModule) -> int:
        """Return what comes to the held bytes: a micro-batch, or the states that AdamW changes, copied on a GPU."""
        step = FLOAT * module.trained // n_parts if steps_on_gpu else 0
        return max(kept_bytes(module) + work_bytes(module), step)

    heaviest = max(learning, key=most_bytes)
    kept = kept_bytes(heaviest)
    weights = _weights_bytes(modules) // n_parts
    has_buckets = cluster.learners > 1 and not sharded
    buckets = FLOAT * sum(each.with_gradient for each in modules) if has_buckets else 0
    adamw = 2 * FLOAT * sum(each.trained for each in learning) // n_parts
    moved = adamw if cluster.offload_optimizer and steps_on_gpu else 0
    references = [each for each in learning if each.settings.with_reference and not each.settings.lora]
    reference = FLOAT * sum(each.shape.parameters for each in references) // n_parts
    return (
        Part("weights", weights, weights, on_host),
        Part("gradients", FLOAT * max(each.trained for each in learning) // n_parts, 0, on_host),
        Part("buckets of DDP", buckets, buckets),
        Part("AdamW", adamw, adamw - moved, on_host),
        Part("AdamW between iterations", moved, is_on_host=True, when="later"),
        Part("references", reference, reference, on_host),
        Part("gathered", gathered_bytes(heaviest, modules) if sharded else 0),
        Part("activations", kept),
        Part("work", most_bytes(heaviest) - kept),
    )


def first_learner_parts(modules: Sequence[SizedModule], cluster: ClusterOptions) -> tuple[Part, ...]:
    """Return what the first learner holds in the host's memory for a time, besides the parts of every learner.

    At the start it has one whole model, or all on one base, of which it sends the others their parts. Where nothing is
    sharded it writes the checkpoints, and copies AdamW's states of all models for that.
    """
    if is_sharded(cluster.sharding, cluster.learners, [each.settings for each in modules]):
        whole = max(_weights_bytes(_on_one_base(each, modules)) for each in modules)
        return (Part("a whole model, of the first", whole, is_on_host=True, when="start"),)
    copied = 2 * FLOAT * sum(each.trained for each in modules) * (cluster.gpus_per_learner > 0)
    return (Part("AdamW while a checkpoint is written, of the first", copied, is_on_host=True, when="later"),)


def loading_part(modules: Sequence[SizedModule], cluster: ClusterOptions) -> Part:
    """Return what a learner that shards nothing loads into the host's memory before it goes to a GPU."""
    sharded = is_sharded(cluster.sharding, cluster.learners, [each.settings for each in modules])
    references = [each for each in modules if each.learns and each.settings.with_reference and not each.settings.lora]
    loaded = _weights_bytes(modules) + FLOAT * sum(each.shape.parameters for each in references)
    return Part("models while they load", loaded * (cluster.gpus_per_learner > 0 and not sharded), 0, True, "start")


def _weights_bytes(modules: Sequence[SizedModule]) -> int:
    adapters = FLOAT * sum(each.adapters for each in modules)
    return bases_bytes(modules, lambda each: each.base_bytes) + adapters


def _on_one_base(module: SizedModule, modules: Sequence[SizedModule]) -> list[SizedModule]:
    """Return the modules that have a module's weights, which is among them."""
    return [each for each in modules if each.settings.shares_base] if module.settings.shares_base else [module]


def gathered_bytes(module: SizedModule, modules: Sequence[SizedModule]) -> int:
    """Return the bytes of what a learner of a sharded module gathers at a time.

    These are the embedding and the output layer for a whole pass, and two decoder layers, since the next is gathered
    while one computes; in the backward pass, the gradients of one more. A layer on one base has the adapters of all
    modules on it.
    """
    ends = module.shape.head_weights * (1 if module.shape.is_tied else 2)
    adapters = sum(each.adapters for each in _on_one_base(module, modules)) // module.shape.layers
    layer = (module.shape.parameters - ends) // module.shape.layers
    own, added = (
        _NUMBER_BYTES[module.settings.gathering_dtype or each] for each in (module.settings.base_dtype, "float32")
    )
    gradients = FLOAT * (module.trained > 0) * (layer + adapters)
    return own * (ends + 2 * layer) + 2 * added * adapters + gradients


def kept_bytes(module: SizedModule) -> int:
    """Return the bytes that the forward pass keeps for the backward pass."""
    shape, batch, settings = module.shape, module.batch, module.settings
    states = FLOAT * shape.hidden
    norm = 0 if settings.lora else states  # its input, if its weights train
    ends = batch.tokens * (states + norm + 2 * FLOAT * shape.head_size) + batch.replies * states
    if not settings.lora and not _has_parts(module):  # where logits have several parts, all are computed again
        ends += FLOAT * batch.replies * shape.vocabulary + _casts(module, shape.head_weights)
    if settings.gradient_checkpointing:
        return ends + batch.tokens * shape.layers * states + batch.mask
    return ends + shape.layers * _layer_bytes(module)


def work_bytes(module: SizedModule) -> int:
    """Return the most bytes that a micro-batch needs at a time beyond those it keeps and the gradients.

    The output layer, one decoder layer, and what autocast has converted by the end of the forward pass, where
    activations do not hold it anyway, need their bytes one after the other.
    """
    shape, settings = module.shape, module.settings
    gradient = module.compute_bytes + (FLOAT if settings.lora and settings.autocast else 0)
    layer = module.batch.tokens * shape.intermediate * gradient
    if shape.is_tied and not settings.lora:
        layer += FLOAT * shape.head_weights  # the output layer's gradient waits for that of the embedding
    if not settings.gradient_checkpointing:
        return max(_head_bytes(module), layer)
    converted = 0 if settings.lora else shape.layers * _layer_casts(module)
    return max(_head_bytes(module), layer + _layer_bytes(module), converted)


def _layer_bytes(module: SizedModule) -> int:
    """Return the bytes that one decoder layer keeps."""
    shape, batch, lora, number = module.shape, module.batch, module.settings.lora, module.compute_bytes
    # Both norms keep inputs, normalised inputs if their weights train, and outputs as their readers cast them: queries,
    # keys, values, gate, up, and the adapter of outputs, each for itself.
    outputs = number * (6 if lora else 5) if module.settings.autocast else 2 * FLOAT
    norms = shape.hidden * (FLOAT * (2 if lora else 4) + outputs)
    adapters = lora.rank * len(lora.target_modules) if lora else 0
    per_token = norms + number * (2 * shape.queries + 4 * shape.intermediate + adapters)
    # With a mask, the attention repeats keys and values for each query's head, unless there is only one.
    keys = shape.queries if batch.mask and shape.kv_heads > 1 else shape.kv_heads * shape.head_size
    attention = number * (2 * keys * batch.keys + batch.mask) + FLOAT * shape.heads * batch.tokens
    return batch.tokens * per_token + attention + _layer_casts(module)


def _head_bytes(module: SizedModule) -> int:
    """Return the most bytes of logits, and of the gradient of the output layer, which the parts add up."""
    replies, at_once, weights = module.batch.replies, module.settings.logits_chunk_tokens, module.shape.head_weights
    logits = min(at_once or replies, replies) * module.shape.vocabulary
    if module.settings.lora:
        return _FROZEN_LOGIT_BYTES * logits + _casts(module, weights)
    head, sums = FLOAT * weights, module.compute_bytes * weights
    if not _has_parts(module):
        return max((_LOGIT_BYTES - FLOAT) * logits, sums + head)
    return max(_LOGIT_BYTES * logits + _casts(module, weights) + head, sums + 2 * head)


def _has_parts(module: SizedModule) -> bool:
    """Return whether the logits of a micro-batch are computed in several parts."""
    return 0 < module.settings.logits_chunk_tokens < module.batch.replies


def _layer_casts(module: SizedModule) -> int:
    converted = 0 if module.settings.base_dtype == module.settings.autocast else module.shape.linear_weights
    return _casts(module, converted + module.adapters // module.shape.layers)


def _casts(module: SizedModule, weights: int) -> int:
    """Return the bytes of weights as autocast converts them."""
    return module.compute_bytes * weights if module.settings.autocast else 0


_CACHE_GROWTH = 1.5
"""The cache of the engine `transformers` grows by half."""
VLLM_ROWS = 256
"""vLLM's default of max_num_seqs, responses in flight."""
_VLLM_BATCHED_TOKENS = 8192
"""vLLM's default of max_num_batched_tokens, tokens of a batch."""
_VLLM_GRAPHS = 10**9
"""CUDA graphs and buffers of one engine, which stay while it sleeps, as does its context: an assumption."""


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine of vLLM on a GPU."""

    module: SizedModule
    n_bytes: float
    """Its share of the GPU."""

    @property
    def cache_tokens(self) -> int:
        """Tokens that its cache holds."""
        n_parts = _tensor_parallel(self.module)
        left = self.n_bytes - self.module.sampling_weights // n_parts - _work_bytes(self.module)
        return max(0, int(left * n_parts // self.module.token_bytes))

    @property
    def fault(self) -> str:
        """Why it does not start; empty: it does. Its cache must hold the longest request."""
        shape, options, n_parts = self.module.shape, self.module.settings.engine_options, _tensor_parallel(self.module)
        if _context(self.module) > shape.context:
            return f"vLLM refuses max_model_len={_context(self.module)}: the model's context is {shape.context} tokens"
        if shape.heads % n_parts:
            return f"vLLM refuses tensor_parallel_size={n_parts}: it does not divide the model's {shape.heads} heads"
        batched = options.get("max_num_batched_tokens", _VLLM_BATCHED_TOKENS)
        rows = options.get("max_num_seqs", VLLM_ROWS)
        if batched < rows:
            return f"vLLM refuses max_num_batched_tokens={batched}, which is less than max_num_seqs={rows}"
        least = _least_bytes(self.module)
        if least <= self.n_bytes:
            return ""
        needs = f"needs {least / 1e9:.1f} for {_context(self.module)} tokens"
        return f"an engine of vLLM gets {self.n_bytes / 1e9:.1f} GB and {needs}"


def engines_of(modules: Sequence[SizedModule], gpu_bytes: float, gpu_share: float) -> tuple[Engine, ...]:
    """Return the engines of a runner.

    Args:
        modules: all modules of the run.
        gpu_bytes: memory of the runner's GPU; 0: it has none.
        gpu_share: share of the GPU that the runner may take; its engines have equal parts of it.
    """
    engines = _with_engine(modules)
    share = engine_share(gpu_share, len(engines))
    return tuple(
        Engine(each, gpu_bytes * float(each.settings.engine_options.get("gpu_memory_utilization", share)))
        for each in engines
        if each.is_vllm and gpu_bytes
    )


def _with_engine(modules: Sequence[SizedModule]) -> list[SizedModule]:
    """Return the modules without those that use the engine of another one, whose base they share."""
    on_base = [each for each in modules if each.settings.shares_base and each.is_vllm]
    return [each for each in modules if each not in on_base[1:]]


def runner_parts(
    modules: Sequence[SizedModule], engines: Sequence[Engine], *, sleeps: bool, in_learner: bool = False
) -> tuple[Part, ...]:
    """Return the memory of one runner.

    Args:
        modules: all modules of the run.
        engines: result of `engines_of`. On a CPU, an engine gets what it needs.
        sleeps: whether the host holds the weights of engines while learners have the GPU.
        in_learner: whether the weights that modules have in common are those of the learner in the same process.
    """
    own = [each for each in modules if not each.is_vllm]
    served = [each for each in _with_engine(modules) if each.is_vllm]
    whole = [each for each in served if not each.adapters]  # a runner has only the adapters of the others
    logits = 5 * FLOAT  # of the engine `transformers`: float32, probabilities, and their cumulated sum in float64
    caches = (
        int(each.rows * (_CACHE_GROWTH * each.longest * each.token_bytes + logits * each.shape.vocabulary))
        for each in own
    )
    # An engine of one worker reads a piece on the GPU; others read files.
    on_gpu = (each.module for each in engines if _tensor_parallel(each.module) == 1)
    shared = (_piece_bytes(each) for each in on_gpu if not (each.adapters or each.settings.handover_folder))
    served_bytes = sum(each.n_bytes for each in engines) if engines else sum(map(_least_bytes, served))
    return (
        Part("weights", bases_bytes(own, lambda each: each.sampling_weights * (not in_learner))),
        Part("cache and logits", max(caches, default=0)),  # one module samples after the other
        Part("engines", int(served_bytes), len(engines) * _VLLM_GRAPHS),
        Part("CUDA contexts of engines", len(engines) * CONTEXT_BYTES, len(engines) * CONTEXT_BYTES),
        Part("a piece on its way to an engine", max(shared, default=0)),
        Part("weights to hand over", sum(each.sampling_weights for each in whole), is_on_host=True),
        Part("weights of sleeping engines", sum(each.sampling_weights for each in served) * sleeps, 0, True, "later"),
        Part(
            "pieces of weights on their way", max(map(_piece_bytes, modules), default=0), is_on_host=True, when="later"
        ),
    )


def _piece_bytes(module: SizedModule) -> int:
    """Return the bytes of a piece that a runner receives, or of the file that its engine of vLLM loads."""
    if module.adapters:
        return FLOAT * module.adapters
    largest = module.sampling_bytes * module.shape.head_weights
    return max(int(module.settings.handover_piece_mb * 2**20), largest)


def _tensor_parallel(module: SizedModule) -> int:
    """Return on how many GPUs vLLM divides a module."""
    return int(module.settings.engine_options.get("tensor_parallel_size") or 1)


def _context(module: SizedModule) -> int:
    """Return the tokens of the longest request that an engine accepts."""
    return int(module.settings.engine_options.get("max_model_len") or module.shape.context)


def _work_bytes(module: SizedModule) -> int:
    """Return the bytes of a batch's activations and logits, and of CUDA graphs."""
    options, shape = module.settings.engine_options, module.shape
    tokens = int(options.get("max_num_batched_tokens") or _VLLM_BATCHED_TOKENS)
    rows = int(options.get("max_num_seqs") or VLLM_ROWS)
    activations = tokens * module.sampling_bytes * (3 * shape.intermediate + 4 * shape.hidden)
    return activations + 2 * FLOAT * rows * shape.vocabulary + _VLLM_GRAPHS


def _least_bytes(module: SizedModule) -> int:
    """Return the bytes, on each of its GPUs, of an engine with a cache of one row."""
    divided = module.sampling_weights + module.token_bytes * _context(module)
    return _work_bytes(module) + divided // _tensor_parallel(module)
