"""The engine `vllm`, one per module in the runner, or one for all adapters on a base.

It loads weights, or adapters, and verifies that vLLM computes with them.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from inspect import signature
from itertools import count
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from codea1_agents.models.model_files import loading_errors, require_model
from codea1_agents.models.sampling import OnEnd, Response, Rows, SamplingRules, require_prompts, uncounted
from codea1_agents.train.failures import StaleWeights
from codea1_agents.train.grpo.causal_models import peft_tensors, plain_tensors, untied
from codea1_agents.train.grpo.sampling import single_seed
from codea1_agents.train.grpo.settings import LoraSettings, ModelSettings, memory_options
from codea1_agents.train.grpo.weights import checksum, in_pieces, require_equal, sum_in_place
from codea1_agents.train.nvidia_smi import gpu_figures
from codea1_env.errors import UnknownName, UserError, extra_needed

_MEMORY = Path("/dev/shm")
_PROBE_TOKENS = 144  # more than vLLM's block of 128 on a CPU: only whole blocks are cached, and a stale one must show
_MEMORY_OPTIONS = frozenset({"gpu_memory_utilization", "kv_cache_memory_bytes"})
_INSTEAD = {"model": "path", "dtype": "sampling_dtype"}  # our own settings
_WORKER = "codea1_agents.train.grpo.vllm_worker.WeightLoader"
_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)  # those for which vLLM has room
_MOST_WAIT_S, _ASK_EVERY_S = 600.0, 5.0  # for memory that a learner on the same GPU holds while it works


class VllmEngine:
    """Samples with vLLM: in a process of its own if it sleeps, as vLLM's allocator has one engine each, and on a GPU.

    The memory of a GPU, through which weights arrive there, is shared between two processes, not with oneself.

    Each response has its own seed. The rest of the batch may change the last bits of the engine's arithmetic, and so a
    response of which a draw was that close.

    Args:
        settings: of the module.
        model: of `transformers`, on the runner. It receives the learner's weights; the engine loads them from it.
        gpus_per_runner: GPUs of the runner, for `engine_share`.
        n_engines: engines of the runner, this one included.
        sleeps: whether `sleep` may be called. vLLM then allocates weights and cache so that they can be released.
        waits: whether it waits for its share of a GPU, as it takes the place of a lost one.
        adapters: those that it is to hold; none: it holds all weights of one module.

    Raises:
        MissingExtra: vllm is not installed.
        UserError: an option is wrong, there is no model, or the engine does not start.
    """

    _request: Any = None
    """vLLM's name of the adapter that samples; None: the weights themselves."""

    def __init__(
        self,
        settings: ModelSettings,
        model: Any,
        *,
        gpus_per_runner: float = 0.0,
        n_engines: int = 1,
        sleeps: bool = False,
        waits: bool = False,
        adapters: Sequence[LoraSettings] = (),
    ) -> None:
        with extra_needed("rollout_engine='vllm'", "vllm"):
            import vllm  # noqa: PLC0415  heavy, and an extra
            from vllm.platforms import current_platform  # noqa: PLC0415
        require_engine_options(settings)
        self._settings, self._model, self._params = settings, model, vllm.SamplingParams
        self._fault = "no weights have been handed over yet"
        is_cpu, is_cuda = current_platform.is_cpu(), current_platform.is_cuda_alike()
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = str(int(sleeps or is_cuda))
        memory = memory_options(gpus_per_runner, n_engines, is_cpu=is_cpu)
        sleeping = {"enable_sleep_mode": True} if sleeps and not is_cpu else {}  # a CPU's worker has nothing to release
        rooms = adapter_arguments(adapters) if adapters else {}
        own = {**sleeping, **rooms, "model": require_model("vllm", settings.path)}
        arguments = {**engine_arguments(settings, memory), **own}
        if waits and not is_cpu:
            wait_for_share(float(arguments.get("gpu_memory_utilization", 0.0)))
        with loading_errors(f"vllm: model {settings.path!r}"):
            self._engine: Any = vllm.LLM(**arguments)
        parallel = self._engine.llm_engine.vllm_config.parallel_config
        is_here = parallel.distributed_executor_backend != "ray"
        if is_here:
            self._engine.collective_rpc("end_with", args=(os.getpid(),))
        shares = is_cuda and is_here and parallel.world_size == 1 and not settings.handover_folder
        self._way = "cuda" if shares else "cpu"
        self._context = int(self._engine.llm_engine.model_config.max_model_len)
        vocabulary = int(model.config.get_text_config().vocab_size)
        n_probe = max(1, min(_PROBE_TOKENS, self._context - 1))
        self._probe = np.random.default_rng(0).integers(0, vocabulary, n_probe).tolist()

    @property
    def context_length(self) -> int | None:
        """As the engine was started."""
        return self._context

    def sample(
        self, prompts: Rows, seeds: Rows, ends: Iterable[int], rules: SamplingRules, on_end: OnEnd = uncounted
    ) -> list[Response]:
        """Return one response per prompt; see `sample_responses`. `on_end` is called when all have ended."""
        require_prompts(prompts, seeds)
        if self._fault:
            raise StaleWeights(self._fault)
        all_ends = frozenset(ends)
        params = [
            self._params(
                temperature=rules.temperature,
                top_p=rules.top_p,
                max_tokens=rules.max_tokens,
                seed=single_seed(seed),
                logprobs=0,
                stop_token_ids=sorted(all_ends),
                detokenize=False,
            )
            for seed in seeds
        ]
        inputs = [{"prompt_token_ids": list(prompt)} for prompt in prompts]
        outputs = self._engine.generate(inputs, params, use_tqdm=False, lora_request=self._request) if inputs else []
        responses = [_response(output.outputs[0], all_ends) for output in outputs]
        for response in responses:
            on_end(response)
        return responses

    def load_weights(self, version: int) -> None:
        """Load the model's present weights and verify that vLLM computes with them.

        Raises:
            StaleWeights: it does not, or the hand-over failed. The engine samples no more until one succeeds.
        """
        self._fault = f"weights {version} are being handed over"
        try:
            self._hand_over(version)
            self._empty_prefix_cache()
        except Exception as error:
            way_out = " (handover_folder hands them over by files)" if self._way == "cuda" else ""
            self._fault = f"weights {version} could not be handed over to vLLM: {error}{way_out}"
            raise StaleWeights(self._fault) from error
        finally:
            if self._way == "cuda":
                torch.cuda.ipc_collect()  # what the worker has loaded; a learner may need the memory
                torch.cuda.empty_cache()
        self._fault = ""

    def sleep(self) -> None:
        """Release the cache, and move the weights to the host."""
        self._fault = "the engine sleeps"
        self._engine.sleep(level=1)

    def wake(self) -> None:
        """Take the memory again. The engine samples after the next hand-over."""
        self._engine.wake_up()

    def close(self) -> None:
        """Release the engine and its memory."""
        self._fault, self._engine = "the engine is closed", None

    def _hand_over(self, version: int) -> None:
        self._engine.collective_rpc("begin_weights", args=(version,))
        sent = self._send_pieces()
        stale = sorted({name for names in self._engine.collective_rpc("finish_weights") for name in names})
        for rank, received in enumerate(self._engine.collective_rpc("received_checksums")):
            require_equal(f"worker {rank}", sent, received)
        if stale:
            raise RuntimeError(f"{len(stale)} parameters or layers have other weights, {', '.join(stale[:3])} first")

    def _send_pieces(self) -> dict[str, int]:
        """Have the workers load the model's tensors; return by what each is compared."""
        sent: dict[str, int] = {}
        for piece in in_pieces(plain_tensors(self._model), self._settings.handover_piece_mb):
            tensors = {name: tensor.to(self._way).contiguous() for name, tensor in piece.items()}
            sent |= {name: sum_in_place(tensor) for name, tensor in tensors.items()}
            self._send(tensors)
            del tensors  # or two pieces would be on the GPU
        return sent

    def _send(self, tensors: Mapping[str, Tensor]) -> None:
        """Have the workers load some tensors: from this process's memory on the GPU (CUDA IPC), or from a file."""
        from safetensors.torch import save_file  # noqa: PLC0415  comes with transformers

        if self._way == "cuda":
            self._engine.collective_rpc("load_weights_shared", args=(bytes(ForkingPickler.dumps(tensors)),))
            return
        with self._folder() as place:
            file = str(Path(place) / "piece.safetensors")
            save_file(dict(tensors), file)
            self._engine.collective_rpc("load_weights_file", args=(file,))

    def _folder(self) -> tempfile.TemporaryDirectory[str]:
        """Return a folder of files that vLLM's workers read, for as long as they read them."""
        place = self._settings.handover_folder or (str(_MEMORY) if _MEMORY.is_dir() else None)
        return tempfile.TemporaryDirectory(prefix="codea1-weights-", dir=place)

    def _empty_prefix_cache(self) -> None:
        """Empty the cache that the old weights computed; verify it with the probe, which is in the cache before."""
        self._run_probe()
        if not self._engine.reset_prefix_cache():
            raise RuntimeError("its prefix cache could not be emptied")
        if cached := self._run_probe().num_cached_tokens:
            raise RuntimeError(f"its prefix cache still has {cached} tokens after it was emptied")

    def _run_probe(self) -> Any:
        """Return vLLM's output for one token after the probe."""
        params = self._params(temperature=0.0, max_tokens=1, detokenize=False, ignore_eos=True)
        return self._engine.generate([{"prompt_token_ids": self._probe}], [params], use_tqdm=False)[0]


class VllmAdapter(VllmEngine):
    """Samples with an adapter on a base that vLLM has loaded itself; only the adapter is handed over.

    Each version has a name of its own, under which vLLM keeps what it has computed of prompts. So nothing that an older
    one has computed is used, and the cache need not be emptied.

    Args:
        settings: of the module.
        model: with the adapter, whose base may be empty.
        beside: the adapter of another module whose engine it uses; None: it starts one.
        more: of `VllmEngine`; `adapters` are those of all modules on the base.

    Raises:
        MissingExtra: vllm is not installed.
        UserError: an option is wrong, there is no model, or the engine does not start.
    """

    def __init__(self, settings: ModelSettings, model: Any, *, beside: VllmAdapter | None = None, **more: Any) -> None:
        self._beside = beside
        self._versions: Iterator[int] = count(1) if beside is None else beside._versions
        if beside is None:
            super().__init__(settings, model, **more)
            return
        self._settings, self._model, self._params = settings, model, beside._params
        self._engine, self._context = beside._engine, beside._context
        self._fault, self._way = "no adapter has been handed over yet", "cpu"

    def _hand_over(self, version: int) -> None:
        """Have vLLM load the adapter, and compare what its layers compute with, in all elements."""
        from safetensors.torch import save_file  # noqa: PLC0415  comes with transformers
        from vllm.lora.request import LoRARequest  # noqa: PLC0415  heavy, and an extra

        lora, dtype = self._settings.lora, getattr(torch, self._settings.sampling_dtype)
        assert lora is not None
        number, before = next(self._versions), self._request
        self._request = None
        if before is not None:
            self._engine.llm_engine.remove_lora(before.lora_int_id)
        scaled = peft_tensors(untied(self._model), lora.alpha / lora.rank)
        tensors = {name: tensor.to(dtype) for name, tensor in scaled.items()}
        facts = {"peft_type": "LORA", "r": lora.rank, "lora_alpha": lora.rank, "bias": "none"}  # the scale is in them
        with self._folder() as place:
            save_file(tensors, str(Path(place) / "adapter_model.safetensors"))
            named = {**facts, "target_modules": list(lora.target_modules)}
            Path(place, "adapter_config.json").write_text(json.dumps(named))
            request = LoRARequest(f"weights-{number}", number, place)
            self._engine.llm_engine.add_lora(request)
        sent = {name: checksum(tensor) for name, tensor in tensors.items()}
        for rank, held in enumerate(self._engine.collective_rpc("adapter_checksums", args=(number, lora.rank))):
            require_equal(f"worker {rank}", sent, held)
        self._request = request

    def _empty_prefix_cache(self) -> None:
        """Do nothing: no other adapter has this one's name."""

    def sleep(self) -> None:
        """Release the engine's memory; the first adapter does it for all."""
        if self._beside is None:
            super().sleep()
        self._fault = "the engine sleeps"

    def wake(self) -> None:
        """Take the memory again; the first adapter does it for all."""
        if self._beside is None:
            super().wake()


def adapter_arguments(adapters: Sequence[LoraSettings]) -> dict[str, Any]:
    """Return the arguments of `vllm.LLM` for an engine that holds some adapters.

    Raises:
        UserError: vLLM has no room for one of this rank.
    """
    rank = max(each.rank for each in adapters)
    room = next((each for each in _RANKS if each >= rank), None)
    if room is None:
        raise UserError(f"lora: rank {rank} is above {_RANKS[-1]}, the largest that vLLM takes")
    return {"enable_lora": True, "max_loras": len(adapters), "max_lora_rank": room}


def wait_for_share(
    share: float,
    *,
    most_s: float = _MOST_WAIT_S,
    every_s: float = _ASK_EVERY_S,
    free: Callable[[], float] | None = None,
) -> bool:
    """Wait until a share of this process's GPUs is free; return whether it is.

    vLLM refuses to start without its share. A runner that takes the place of a lost one may find a learner at work on
    the GPU, which releases what it does not keep after its update.

    Args:
        share: of the memory of each GPU, in [0, 1].
        most_s: seconds to wait at most; then vLLM says what is missing.
        every_s: seconds between two looks.
        free: returns the free share; None: asks nvidia-smi.
    """
    deadline = time.monotonic() + most_s
    while (free or free_share)() < share:
        if time.monotonic() >= deadline:
            return False
        time.sleep(every_s)
    return True


def free_share() -> float:
    """Return the free share of the memory of this process's GPUs, of the fullest one; 1 if nothing is known of them."""
    figures = gpu_figures("memory.free", "memory.total")
    return min((float(free) / float(total) for free, total in figures), default=1.0)


def _response(output: Any, ends: frozenset[int]) -> Response:
    tokens = tuple(int(token) for token in output.token_ids)
    if not tokens:
        raise UserError("vLLM gave an empty response; an end token must count as one")
    log_probs = tuple(float(each[token].logprob) for token, each in zip(tokens, output.logprobs, strict=True))
    return Response(tokens, log_probs, is_cut=tokens[-1] not in ends)


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
