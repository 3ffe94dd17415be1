"""The engine `vllm`, one per module within the runner: takes weights by a file, and must prove that it has them."""

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
from codea1_agents.train.grpo.sampling import Response, SamplingRules, single_seed
from codea1_env.errors import UserError, extra_needed

_WORKER = "codea1_agents.train.grpo.vllm_worker.WeightTaker"
_MEMORY = Path("/dev/shm")
_PROBE_TOKENS = 144  # more than vLLM's block of 128 on a CPU, or a stale prefix could not show
_PROBE_REPLY = 8


class VllmEngine:
    """Samples with vLLM, in this process.

    A response has a seed of its own, so that it depends on its neighbours by no more than the last bits of the engine's
    arithmetic: where these turn a close draw, a response may differ with what else is in the batch.

    Args:
        settings: of the module.
        model: of `transformers`, on the runner; it takes the learner's weights, and the engine takes its.

    Raises:
        MissingExtra: vllm is not installed.
        UserError: no model there, or the engine does not start.
    """

    def __init__(self, settings: ModelSettings, model: Any) -> None:
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")  # several engines live and end with the runner
        with extra_needed("rollout_engine='vllm'", "vllm"):
            import vllm  # noqa: PLC0415  heavy, and an extra
        self._settings, self._model, self._params = settings, model, vllm.SamplingParams
        self._fault = "no weights have been handed over yet"
        options = {
            "dtype": settings.sampling_dtype,
            "skip_tokenizer_init": True,
            "generation_config": "vllm",  # a model's own temperature or penalty would be applied beside ours
            "worker_extension_cls": _WORKER,
            "logprobs_mode": "raw_logprobs",
            **settings.engine_options,
        }
        with loading_errors(f"vllm: model {settings.path!r}"):
            self._engine: Any = vllm.LLM(require_model("vllm", settings.path), **options)
        self._room = int(self._engine.llm_engine.model_config.max_model_len)
        vocabulary = int(model.config.get_text_config().vocab_size)
        n_probe = max(1, min(_PROBE_TOKENS, self._room - _PROBE_REPLY))
        self._probe = np.random.default_rng(0).integers(0, vocabulary, n_probe).tolist()

    @property
    def room(self) -> int | None:
        """As the engine was started."""
        return self._room

    def sample(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[Sequence[int]],
        ends: Iterable[int],
        rules: SamplingRules,
    ) -> list[Response]:
        """Return one response per prompt; see `sample_responses`."""
        if len(prompts) != len(seeds) or not all(map(len, prompts)):
            raise ValueError("every response needs a prompt that is not empty, and a seed")
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

    def take_weights(self, version: int) -> None:
        """Hand the model's present weights over and check that the engine computes what the model does."""
        self._fault = f"weights {version} are on their way"
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
        """Let go of the engine and of its memory."""
        self._fault, self._engine = "the engine is closed", None

    def _hand_over(self, version: int) -> None:
        from safetensors.torch import save_file  # noqa: PLC0415  comes with transformers

        folder = self._settings.handover_folder or (str(_MEMORY) if _MEMORY.is_dir() else None)
        with tempfile.TemporaryDirectory(prefix="codea1-weights-", dir=folder) as place:
            file = str(Path(place) / f"{version}.safetensors")
            save_file({name: tensor.cpu().contiguous() for name, tensor in plain_weights(self._model).items()}, file)
            taken = self._engine.collective_rpc("take_weights", args=(file, version))
        if set(taken) != {version}:
            raise RuntimeError(f"its workers hold versions {taken}")
        if not self._engine.reset_prefix_cache():
            raise RuntimeError("it did not forget its prefixes")

    def _gap(self) -> float:
        """Return by how much the engine's log-probabilities of a greedy reply differ from the model's."""
        params = self._params(temperature=0.0, max_tokens=_PROBE_REPLY, logprobs=0, detokenize=False, ignore_eos=True)
        n_reply = self._room - len(self._probe)
        params.max_tokens = max(1, min(_PROBE_REPLY, n_reply))
        (reply,) = self._generated([self._probe], [params], frozenset())
        return largest_gap(self._model, self._probe, reply)

    def _generated(
        self, prompts: Sequence[Sequence[int]], params: Sequence[Any], ends: frozenset[int]
    ) -> list[Response]:
        if not prompts:
            return []
        asked = [{"prompt_token_ids": list(prompt)} for prompt in prompts]
        outputs = self._engine.generate(asked, list(params), use_tqdm=False)
        return [_response(output.outputs[0], ends) for output in outputs]


def largest_gap(model: Any, prompt: Sequence[int], response: Response) -> float:
    """Return the largest difference, in nats, of a response's log-probabilities to those that a model gives."""
    ids = torch.tensor([[*prompt, *response.tokens]], device=model.device)
    with torch.inference_mode():
        logits = model(input_ids=ids, use_cache=False).logits[0, len(prompt) - 1 : -1].float()
    expected = logits.log_softmax(-1).gather(-1, ids[0, len(prompt) :].unsqueeze(-1)).squeeze(-1)
    told = torch.tensor(response.log_probs, device=expected.device)
    return float((told - expected).abs().max())


def _response(output: Any, ends: frozenset[int]) -> Response:
    tokens = tuple(int(token) for token in output.token_ids)
    if not tokens:
        raise UserError("vLLM gave an empty response; an end token must count as one")
    log_probs = tuple(float(each[token].logprob) for token, each in zip(tokens, output.logprobs, strict=True))
    return Response(tokens, log_probs, is_cut=tokens[-1] not in ends)
