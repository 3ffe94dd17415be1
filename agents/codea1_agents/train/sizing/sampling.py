"""The memory of a runner, by part, and how many responses it samples at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codea1_agents.models.shapes import ModelShape
from codea1_agents.train.grpo.model_settings import ModelSettings
from codea1_agents.train.grpo.vllm_options import engine_share
from codea1_agents.train.sizing.learning import FLOAT, Part

_NUMBER_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
_CACHE_GROWTH = 1.5
"""The cache of the engine `transformers` grows by half."""
VLLM_ROWS = 256
"""vLLM's default of max_num_seqs, responses in flight."""
_VLLM_BATCHED_TOKENS = 8192
"""vLLM's default of max_num_batched_tokens, tokens of a batch."""
_VLLM_GRAPHS = 10**9
"""CUDA graphs and buffers of one engine: an assumption."""


@dataclass(frozen=True, slots=True)
class SampledModule:
    """A module as a runner holds it."""

    shape: ModelShape
    settings: ModelSettings
    longest: int
    """Tokens of the longest prompt and reply together."""
    rows: int
    """Responses in one batch of the sampler."""

    @property
    def is_vllm(self) -> bool:
        """Whether vLLM samples."""
        return self.settings.rollout_engine == "vllm"

    @property
    def n_parts(self) -> int:
        """On how many GPUs vLLM divides the module (tensor parallelism)."""
        return int(self.settings.engine_options.get("tensor_parallel_size") or 1)

    @property
    def number_bytes(self) -> int:
        """Bytes of a number of the weights and of the cache."""
        return _NUMBER_BYTES[self.settings.sampling_dtype]

    @property
    def weights(self) -> int:
        """Bytes of the weights."""
        return self.number_bytes * self.shape.parameters

    @property
    def token_bytes(self) -> int:
        """Bytes of the cache of one token."""
        return self.shape.cache_bytes(self.number_bytes)


@dataclass(frozen=True, slots=True)
class RunnerMemory:
    """The memory of one runner."""

    on_device: tuple[Part, ...]
    """On its GPU, if it has one."""
    on_host: tuple[Part, ...]
    fault: str = ""
    """Why an engine cannot start in its share; empty: it can."""
    cache_tokens: int = 0
    """Tokens in the cache of the smallest engine; 0: vLLM does not sample on a GPU."""
    asleep: int = 0
    """Bytes on the GPU while the engines sleep."""


def runner_memory(modules: Sequence[SampledModule], gpu_bytes: float, gpu_share: float) -> RunnerMemory:
    """Return the memory of one runner.

    Args:
        modules: all modules of the run.
        gpu_bytes: memory of its GPU; 0: it has none.
        gpu_share: share of the GPU that the runner may take; its engines have equal parts of it.
    """
    engines = [each for each in modules if each.is_vllm]
    own = [each for each in modules if not each.is_vllm]
    plain = [Part("weights", sum(each.weights for each in own)), Part("cache and logits", _sampler_bytes(own))]
    copies = Part("weights to hand over", sum(each.weights for each in engines))
    if not engines or not gpu_bytes:
        started = [Part("engines", sum(_least_engine_bytes(each) for each in engines))]
        return RunnerMemory((*plain, *started), (copies,))
    sizes = [gpu_bytes * _engine_share(each, len(modules), gpu_share) for each in engines]
    faults = [_fault(each, size) for each, size in zip(engines, sizes, strict=True)]
    tokens = min(_cache_tokens(each, size) for each, size in zip(engines, sizes, strict=True))
    return RunnerMemory(
        on_device=(*plain, Part("engines", int(sum(sizes)))),
        on_host=(copies,),
        fault=next(filter(None, faults), ""),
        cache_tokens=max(tokens, 0),
        asleep=len(engines) * _VLLM_GRAPHS,
    )


def _engine_share(module: SampledModule, n_engines: int, gpu_share: float) -> float:
    stated = module.settings.engine_options.get("gpu_memory_utilization")
    return float(stated) if stated is not None else engine_share(gpu_share, n_engines)


def _cache_tokens(module: SampledModule, n_bytes: float) -> int:
    """Return how many tokens the cache of an engine holds."""
    return int(
        (n_bytes - module.weights // module.n_parts - _work_bytes(module)) * module.n_parts // module.token_bytes
    )


def _engine_context(module: SampledModule) -> int:
    """Return the tokens of the longest request that an engine accepts."""
    return int(module.settings.engine_options.get("max_model_len") or module.shape.context)


def _work_bytes(module: SampledModule) -> int:
    """Return the bytes of a batch's activations and logits, and of CUDA graphs."""
    options, shape = module.settings.engine_options, module.shape
    tokens = int(options.get("max_num_batched_tokens") or _VLLM_BATCHED_TOKENS)
    rows = int(options.get("max_num_seqs") or VLLM_ROWS)
    activations = tokens * module.number_bytes * (3 * shape.intermediate + 4 * shape.hidden)
    return activations + 2 * FLOAT * rows * shape.vocabulary + _VLLM_GRAPHS


def _least_engine_bytes(module: SampledModule) -> int:
    """Return the bytes, on each of its GPUs, of an engine with a cache of one row."""
    divided = module.weights + module.token_bytes * _engine_context(module)
    return _work_bytes(module) + divided // module.n_parts


def _fault(module: SampledModule, n_bytes: float) -> str:
    """Return why an engine does not start; empty: it does. Its cache must hold the longest request."""
    least, tokens = _least_engine_bytes(module), _engine_context(module)
    if least <= n_bytes:
        return ""
    return f"an engine of vLLM gets {n_bytes / 1e9:.1f} GB and needs {least / 1e9:.1f} for {tokens} tokens"


def _sampler_bytes(modules: Sequence[SampledModule]) -> int:
    """Return the cache and the logits of the engine `transformers`, which samples with one module after the other."""
    return max((_one_sampler_bytes(each) for each in modules), default=0)


def _one_sampler_bytes(module: SampledModule) -> int:
    cache = _CACHE_GROWTH * module.longest * module.token_bytes
    logits = 5 * FLOAT * module.shape.vocabulary  # float32, probabilities, and their cumulated sum in float64
    return int(module.rows * (cache + logits))
