"""The engine `vllm`, one per module in the runner. It loads weights from a file and checks that it uses them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from codea1_agents.models.model_files import loading_errors, require_model
from codea1_agents.train.grpo.adapters import plain_weights
from codea1_agents.train.grpo.failures import StaleWeights
from codea1_agents.train.grpo.model_settings import ModelSettings
from codea1_agents.train.grpo.sampling import Response, Rows, SamplingRules, require_prompts, single_seed
from codea1_env.errors import UserError, extra_needed

_WORKER = "codea1_agents.train.grpo.vllm_worker.WeightLoader"
_MEMORY = Path("/dev/shm")
_PROBE_TOKENS = 144  # more than vLLM's block of 128 on a CPU: only whole blocks are cached, and a stale one must show
_PROBE_REPLY = 8


class VllmEngine:
    """Samples with vLLM, in this process.

    Each response has its own seed. The rest of the batch may change the last bits of the engine's arithmetic, and so a
    response of which a draw was that close.

    Args:
        settings: of the module.
        model: of `transformers`, on the runner. It receives the learner's weights; the engine loads them from it.

    Raises:
        MissingExtra: vllm is not installed.
        UserError: there is no model, or the engine does not start.
    """

    def __init__(self, settings: ModelSettings, model: Any) -> None:
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")  # engines live in the runner's process
        with extra_needed("rollout_engine='vllm'", "vllm"):
            import vllm  # noqa: PLC0415  heavy, and an extra
        self._settings, self._model, self._params = settings, model, vllm.SamplingParams
        self._fault = "no weights have been handed over yet"
        options = {
            "dtype": settings.sampling_dtype,
            "skip_tokenizer_init": True,
            "generation_config": "vllm",  # or vLLM would also apply the model's own temperature and penalties
            "worker_extension_cls": _WORKER,
            "logprobs_mode": "processed_logprobs",
            **settings.engine_options,
        }
        with loading_errors(f"vllm: model {settings.path!r}"):
            self._engine: Any = vllm.LLM(require_model("vllm", settings.path), **options)
        self._context = int(self._engine.llm_engine.model_config.max_model_len)
        vocabulary = int(model.config.get_text_config().vocab_size)
        n_probe = max(1, min(_PROBE_TOKENS, self._context - _PROBE_REPLY))
        self._probe = np.random.default_rng(0).integers(0, vocabulary, n_probe).tolist()

    @property
    def context_length(self) -> int | None:
        """As the engine was started."""
        return self._context

    def sample(self, prompts: Rows, seeds: Rows, ends: Iterable[int], rules: SamplingRules) -> list[Response]:
        """Return one response per prompt; see `sample_responses`."""
        require_prompts(prompts, seeds)
        if self._fault:
            raise StaleWeights(self._fault)
        ends = sorted(ends)
        return self._generated(
            prompts,
            [
                self._params(
                    temperature=rules.temperature,
                    top_p=rules.top_p,
                    max_tokens=rules.max_tokens,
                    seed=single_seed(seed),
                    logprobs=0,
                    stop_token_ids=ends,
                    detokenize=False,
                )
                for seed in seeds
            ],
            frozenset(ends),
        )

    def load_weights(self, version: int) -> None:
        """Load the model's present weights and check that the engine computes the same as the model."""
        self._fault = f"weights {version} are being handed over"
        try:
            self._hand_over(version)
            gap = self._gap()
        except Exception as error:
            self._fault = f"weights {version} could not be handed over to vLLM: {error}"
            raise StaleWeights(self._fault) from error
        if not gap <= self._settings.allowed_gap:
            self._fault = (
                f"after weights {version} were handed over, vLLM's log-probabilities are {gap:.2g} off those of "
                f"{self._settings.path!r} in transformers, and {self._settings.allowed_gap:g} is allowed"
            )
            raise StaleWeights(self._fault)
        self._fault = ""

    def close(self) -> None:
        """Release the engine and its memory."""
        self._fault, self._engine = "the engine is closed", None

    def _hand_over(self, version: int) -> None:
        from safetensors.torch import save_file  # noqa: PLC0415  comes with transformers

        folder = self._settings.handover_folder or (str(_MEMORY) if _MEMORY.is_dir() else None)
        with tempfile.TemporaryDirectory(prefix="codea1-weights-", dir=folder) as place:
            file = str(Path(place) / f"{version}.safetensors")
            save_file({name: tensor.cpu().contiguous() for name, tensor in plain_weights(self._model).items()}, file)
            loaded = self._engine.collective_rpc("load_weights_file", args=(file, version))
        if set(loaded) != {version}:
            raise RuntimeError(f"its workers hold versions {loaded}")
        if not self._engine.reset_prefix_cache():
            raise RuntimeError("its prefix cache could not be emptied")

    def _gap(self) -> float:
        """Return the largest difference between the engine's and the model's log-probabilities of a greedy reply."""
        params = self._params(temperature=0.0, max_tokens=_PROBE_REPLY, logprobs=0, detokenize=False, ignore_eos=True)
        n_reply = self._context - len(self._probe)
        params.max_tokens = max(1, min(_PROBE_REPLY, n_reply))
        (reply,) = self._generated([self._probe], [params], frozenset())
        return largest_gap(self._model, self._probe, reply)

    def _generated(self, prompts: Rows, params: Sequence[Any], ends: frozenset[int]) -> list[Response]:
        if not prompts:
            return []
        inputs = [{"prompt_token_ids": list(prompt)} for prompt in prompts]
        outputs = self._engine.generate(inputs, list(params), use_tqdm=False)
        return [_response(output.outputs[0], ends) for output in outputs]


def largest_gap(model: Any, prompt: Sequence[int], response: Response, temperature: float = 1.0) -> float:
    """Return the largest difference, in nats, between the log-probabilities of a response and those of a model."""
    ids = torch.tensor([[*prompt, *response.tokens]], device=model.device)
    with torch.inference_mode():
        logits = model(input_ids=ids, use_cache=False).logits[0, len(prompt) - 1 : -1].float()
    expected = (logits / temperature).log_softmax(-1).gather(-1, ids[0, len(prompt) :].unsqueeze(-1)).squeeze(-1)
    reported = torch.tensor(response.log_probs, device=expected.device)
    return float((reported - expected).abs().max())


def _response(output: Any, ends: frozenset[int]) -> Response:
    tokens = tuple(int(token) for token in output.token_ids)
    if not tokens:
        raise UserError("vLLM gave an empty response; an end token must count as one")
    log_probs = tuple(float(each[token].logprob) for token, each in zip(tokens, output.logprobs, strict=True))
    return Response(tokens, log_probs, is_cut=tokens[-1] not in ends)
