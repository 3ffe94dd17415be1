"""The arguments with which an engine of vLLM starts, and the check of those that the user names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from inspect import signature
from typing import Any

from codea1_agents.train.grpo.model_settings import ModelSettings
from codea1_env.errors import UnknownName, UserError

_USED = 0.9  # share of a GPU's memory that all engines of a runner use together, as vLLM's usual default for one
_CPU_CACHE_BYTES = 4 * 2**30  # caches of all engines of a runner on a CPU, whose memory is not the runner's alone
_MEMORY_OPTIONS = frozenset({"gpu_memory_utilization", "kv_cache_memory_bytes"})
_INSTEAD = {"model": "path", "dtype": "sampling_dtype"}  # our own settings
_WORKER = "codea1_agents.train.grpo.vllm_worker.WeightLoader"


def engine_share(gpus_per_runner: float, n_engines: int) -> float:
    """Return the share of a GPU's memory for each engine of a runner, within (0, 1).

    Args:
        gpus_per_runner: GPUs of the runner; a fraction if runners share one. With more than one, each engine uses a
            part of each. 0: as with 1, since a runner in the driver's process can use a GPU that Ray did not assign.
        n_engines: engines of the runner, at least 1.
    """
    return _USED * min(1.0, gpus_per_runner or 1.0) / n_engines


def memory_options(gpus_per_runner: float, n_engines: int, *, is_cpu: bool) -> dict[str, Any]:
    """Return the arguments of vLLM that divide the memory of a runner among its engines.

    On a CPU vLLM's share would be one of the machine's memory, which learners and other runners use, too. So there the
    engines divide a fixed number of bytes.
    """
    if is_cpu:
        return {"kv_cache_memory_bytes": _CPU_CACHE_BYTES // n_engines}
    return {"gpu_memory_utilization": engine_share(gpus_per_runner, n_engines)}


def engine_arguments(settings: ModelSettings, memory: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of `vllm.LLM`. The user's `engine_options` have precedence over the defaults.

    Args:
        settings: of the module; see `require_engine_options`.
        memory: result of `memory_options`. It applies if the user names no option of memory.
    """
    defaults = {"enable_prefix_caching": True, **({} if _MEMORY_OPTIONS & set(settings.engine_options) else memory)}
    return {**defaults, **settings.engine_options, **_own_arguments(settings)}


def require_engine_options(settings: ModelSettings) -> None:
    """Check the names of a module's `engine_options` against the installed vLLM.

    Without vLLM only the names that this project sets itself are refused. The runners check again.

    Raises:
        UserError: vLLM has no argument of that name, or this project sets it.
    """
    for name in sorted(settings.engine_options.keys() & _own_arguments(settings).keys()):
        hint = f"; set {_INSTEAD[name]} instead" if name in _INSTEAD else ""
        raise UserError(f"engine_options: {name!r} cannot be set, as the hand-over of weights depends on it{hint}")
    known = _known_options() if settings.engine_options else frozenset[str]()
    for name in sorted(settings.engine_options) if known else ():
        if name not in known:
            raise UnknownName.of("engine option of vLLM", name, known - _own_arguments(settings).keys())


def _own_arguments(settings: ModelSettings) -> dict[str, Any]:
    return {
        "model": settings.path,
        "dtype": settings.sampling_dtype,
        "skip_tokenizer_init": True,
        "generation_config": "vllm",  # or vLLM would also apply the model's own temperature and penalties
        "worker_extension_cls": _WORKER,
        "logprobs_mode": "processed_logprobs",
    }


def _known_options() -> frozenset[str]:
    """Return the names of all arguments of `vllm.LLM`; none if vLLM is not installed."""
    try:
        from vllm import LLM  # noqa: PLC0415  heavy, and an extra
        from vllm.engine.arg_utils import EngineArgs  # noqa: PLC0415
    except ImportError:
        return frozenset()
    named = {name for name, each in signature(LLM).parameters.items() if each.kind is not each.VAR_KEYWORD}
    return frozenset(name for name in named | {each.name for each in fields(EngineArgs)} if not name.startswith("_"))
