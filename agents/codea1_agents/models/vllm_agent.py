"""The agent `vllm`: vLLM's engine in this process, with the same prompts and token ids as the agent `transformers`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from codea1_agents.models.chat_format import ChatFormat, load_tokenizer
from codea1_agents.models.completions import FINISHES, Completion, CompletionResult, Sampling
from codea1_agents.models.local_model import LocalModel, Request
from codea1_agents.models.model_files import loading_errors, require_model
from codea1_agents.prompts import Prompts, load_prompts
from codea1_env.agent import AgentContext
from codea1_env.errors import UserError, extra_needed


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How vLLM's engine loads and runs a model; the fields are arguments of `vllm.LLM`."""

    dtype: str
    max_model_len: int | None
    gpu_memory_utilization: float
    tensor_parallel_size: int
    enforce_eager: bool
    trust_remote_code: bool
    generation_config: str = "vllm"
    """Not the model's own, whose temperature or penalty would be applied in addition to ours."""

    def start(self, place: str, further: Mapping[str, Any]) -> Any:
        """Return an engine with the model of this folder or hub id, and with further arguments."""
        return _imported_vllm().LLM(place, **asdict(self), **further)


class VllmAgent(LocalModel):
    """Generates with vLLM's engine from a local folder or a hub id; the engine schedules a whole batch.

    Every request has its own seed, which depends only on the agent's seed, the observation and its info, so a reply is
    the same in a batch and in a single call, up to the last bits of the engine's arithmetic.
    """

    def __init__(
        self,
        context: AgentContext | None = None,
        *,
        model: str = "",
        prompts: str | Prompts = "default",
        temperature: float = 1.0,
        top_p: float = 1.0,
        max_tokens: int = 4096,
        seed: int | None = None,
        dtype: str = "auto",
        max_model_len: int = 0,
        gpu_memory_utilization: float = 0.9,
        tensor_parallel_size: int = 1,
        enforce_eager: bool = False,
        trust_remote_code: bool = False,
        template_arguments: Mapping[str, Any] | None = None,
        engine: Mapping[str, Any] | None = None,
    ) -> None:
        """Start the engine, which takes a while.

        Args:
            context: its seed is used if `seed` is None.
            model: a folder, or an id on the HuggingFace hub.
            prompts: a wording's name, a file, or `Prompts`.
            temperature: 0: greedy.
            top_p: within (0, 1].
            max_tokens: longest reply, in tokens.
            seed: seeds the sampling until `reset`.
            dtype: auto: as the weights are stored.
            max_model_len: most tokens of a prompt and its reply together; 0: the model's limit.
            gpu_memory_utilization: share of the GPU's memory, within (0, 1].
            tensor_parallel_size: GPUs that share the model.
            enforce_eager: no compiled graphs: starts sooner, runs slower.
            trust_remote_code: whether code of the model's repository may run.
            template_arguments: what its chat template is given, e.g. `{"enable_thinking": False}`.
            engine: further arguments of `vllm.LLM`.

        Raises:
            MissingExtra: vllm is not installed.
            UserError: an option is out of range, the model does not exist, or the engine does not start.
        """
        self._params = _imported_vllm().SamplingParams
        sampling = _sampling_within(max_model_len, Sampling(temperature, top_p, max_tokens))
        wording, place = load_prompts(prompts), require_model("vllm", str(model))
        settings = EngineSettings(
            dtype, max_model_len or None, gpu_memory_utilization, tensor_parallel_size, enforce_eager, trust_remote_code
        )
        with loading_errors(f"vllm: model {str(model)!r}"):
            tokenizer = load_tokenizer(place, trust_remote_code=trust_remote_code)
            self._engine: Any = settings.start(place, engine or {})
        super().__init__(
            context,
            seed,
            name=f"vllm({model})",
            chat_format=ChatFormat(tokenizer, str(model), template_arguments or {}),
            prompts=wording,
            sampling=sampling,
            context_length=int(self._engine.llm_engine.model_config.max_model_len),
        )

    def close(self) -> None:
        """Free the engine and its memory; later replies raise UserError."""
        engine, self._engine = self._engine, None
        del engine

    def _generate(self, requests: Sequence[Request]) -> list[CompletionResult]:
        if self._engine is None:
            raise UserError(f"{self!r} is closed")
        if not requests:
            return []
        prompts = [{"prompt_token_ids": list(each.prompt_ids)} for each in requests]
        ends = list(self._format.ends(None))  # once for all: it writes a chat with the template
        settings = [self._settings(each.seed, ends) for each in requests]
        outputs = self._engine.generate(prompts, settings, use_tqdm=False)
        return [self._completion(each) for each in outputs]

    def _settings(self, seed: int, ends: list[int]) -> Any:
        sampling = self._sampling
        return self._params(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            max_tokens=sampling.max_tokens,
            seed=seed,
            stop_token_ids=ends,
        )

    def _completion(self, output: Any) -> Completion:
        first = output.outputs[0]
        return Completion(
            self._format.reply(list(first.token_ids)),
            finish=FINISHES.get(str(first.finish_reason), "other"),
            prompt_tokens=len(output.prompt_token_ids),
            completion_tokens=len(first.token_ids),
        )


def _sampling_within(max_model_len: int, sampling: Sampling) -> Sampling:
    """Return the sampling; raise UserError if it leaves no tokens for a prompt."""
    if max_model_len and max_model_len <= sampling.max_tokens:
        detail = f"leaves no tokens for a prompt with max_tokens={sampling.max_tokens}"
        raise UserError(f"max_model_len={max_model_len} {detail}")
    return sampling


def _imported_vllm() -> Any:
    with extra_needed("the agent 'vllm'", "vllm"):
        import vllm  # noqa: PLC0415  heavy, and an extra
    return vllm
