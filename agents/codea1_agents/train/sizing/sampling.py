"""The memory of a runner, by part, and what an engine of vLLM does with its share of a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codea1_agents.train.grpo.settings import engine_share
from codea1_agents.train.sizing.learning import CONTEXT_BYTES, FLOAT, Part, SizedModule, bases_bytes

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
