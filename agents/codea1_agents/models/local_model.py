"""The base class of agents with a model in this process: prompts, seeds, totals. Subclasses generate the tokens."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from codea1_agents.models.chat_format import ChatFormat
from codea1_agents.models.completions import Completion, CompletionAgent, CompletionResult, Sampling, draw_seed
from codea1_agents.prompts import Prompts
from codea1_env.agent import AgentContext, Info, Observation
from codea1_env.errors import AgentUnavailable


@dataclass(frozen=True, slots=True)
class Request:
    """One reply to generate."""

    prompt_ids: tuple[int, ...]
    seed: int


class LocalModel(CompletionAgent):
    """An agent that generates in this process; a lock allows one generation at a time."""

    def __init__(
        self,
        context: AgentContext | None,
        seed: int | None,
        *,
        name: str,
        chat_format: ChatFormat,
        prompts: Prompts,
        sampling: Sampling,
        context_length: int | None,
    ) -> None:
        """Store the settings.

        Args:
            context: its seed is used if `seed` is None.
            seed: seeds the sampling until `reset`; None: the context's seed does.
            name: the agent's name in error messages, such as `transformers(folder)`.
            chat_format: how the model's tokenizer writes prompts.
            prompts: the wording.
            sampling: sampling settings.
            context_length: most tokens of a prompt and its reply together; None: unknown.
        """
        super().__init__(context, seed)
        self._name, self._format, self._prompts = name, chat_format, prompts
        self._sampling, self._context_length = sampling, context_length
        self._lock = threading.Lock()

    def complete_batch(self, observations: Sequence[Observation], infos: Sequence[Info]) -> list[CompletionResult]:
        """Return what `act_batch` returns, with token counts and finish reasons."""
        requests = [self._request(*pair) for pair in zip(observations, infos, strict=True)]
        with self._lock:
            generated = iter(self._generate([each for each in requests if isinstance(each, Request)]))
            results = [next(generated) if isinstance(each, Request) else each for each in requests]
            self._count(results)
        return results

    @abstractmethod
    def _generate(self, requests: Sequence[Request]) -> list[CompletionResult]:
        """Return one result per request, in order."""

    def __repr__(self) -> str:
        return self._name

    def _request(self, observation: Observation, info: Info) -> Request | AgentUnavailable:
        ids = self._format.prompt_ids(self._prompts.messages(observation, info))
        if self._context_length is None or len(ids) + self._sampling.max_tokens <= self._context_length:
            return Request(tuple(ids), draw_seed(self._seed, observation, info))
        return AgentUnavailable(
            f"{self._name}: a prompt of {len(ids)} tokens and max_tokens={self._sampling.max_tokens} "
            f"do not fit its context of {self._context_length}"
        )

    def _count(self, results: Sequence[CompletionResult]) -> None:
        unanswered = sum(isinstance(each, AgentUnavailable) for each in results)
        total = self._usage.with_completions(each for each in results if isinstance(each, Completion))
        self._usage = replace(total, unanswered=total.unanswered + unanswered)
