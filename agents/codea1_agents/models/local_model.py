"""What agents with a model in this process share: prompts, seeds, batches, totals. How tokens come about is theirs."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from codea1_agents.models.chat_format import ChatFormat
from codea1_agents.models.completions import Completion, Sampling, Usage, draw_seed
from codea1_agents.prompts import Prompts
from codea1_env.agent import Info, Observation
from codea1_env.errors import AgentUnavailable

Answered = Completion | AgentUnavailable


@dataclass(frozen=True, slots=True)
class Request:
    """One reply to be generated."""

    prompt_ids: tuple[int, ...]
    seed: int


class LocalModel(ABC):
    """An agent that generates by itself; one generation at a time, whichever threads ask."""

    stateless = True

    def __init__(
        self, *, name: str, chat_format: ChatFormat, prompts: Prompts, sampling: Sampling, room: int | None, seed: int
    ) -> None:
        """Take what every such agent needs.

        Args:
            name: what errors call it by, e.g. `transformers(folder)`.
            chat_format: of its tokenizer.
            prompts: the wording.
            sampling: how tokens are chosen.
            room: most tokens of a prompt and its reply together; None: unknown.
            seed: of the draws, until `reset`.
        """
        self._name, self._format, self._prompts = name, chat_format, prompts
        self._sampling, self._room = sampling, room
        self._lock = threading.Lock()
        self._usage = Usage()
        self.reset(seed)

    @property
    def usage(self) -> Usage:
        """Totals since the agent was made."""
        return self._usage

    def reset(self, seed: int) -> None:
        """Draw from here on with this seed."""
        self._seed = seed

    def act(self, observation: Observation, info: Info) -> str:
        """Return the model's reply.

        Raises:
            AgentUnavailable: the prompt and the reply do not fit the model's context, or memory does not suffice.
        """
        return self.complete(observation, info).text

    def act_batch(self, observations: Sequence[Observation], infos: Sequence[Info]) -> list[str | AgentUnavailable]:
        """Return a reply each, in order; where there is none, the error, so that the others' are not lost."""
        found = self.complete_batch(observations, infos)
        return [each.text if isinstance(each, Completion) else each for each in found]

    def complete(self, observation: Observation, info: Info) -> Completion:
        """Return the reply with its token counts and end; raises as `act`."""
        found = self.complete_batch([observation], [info])[0]
        if isinstance(found, AgentUnavailable):
            raise found
        return found

    def complete_batch(self, observations: Sequence[Observation], infos: Sequence[Info]) -> list[Answered]:
        """Return what `act_batch` does, with token counts and end."""
        asked = [self._request(*pair) for pair in zip(observations, infos, strict=True)]
        with self._lock:
            generated = iter(self._generate([each for each in asked if isinstance(each, Request)]))
            results = [next(generated) if isinstance(each, Request) else each for each in asked]
            self._count(results)
        return results

    @abstractmethod
    def _generate(self, requests: Sequence[Request]) -> list[Answered]:
        """Return one answer per request, in order."""

    def __repr__(self) -> str:
        return self._name

    def _request(self, observation: Observation, info: Info) -> Request | AgentUnavailable:
        ids = self._format.prompt_ids(self._prompts.messages(observation, info))
        if self._room is None or len(ids) + self._sampling.max_tokens <= self._room:
            return Request(tuple(ids), draw_seed(self._seed, observation, info))
        return AgentUnavailable(
            f"{self._name}: a prompt of {len(ids)} tokens and max_tokens={self._sampling.max_tokens} "
            f"do not fit its context of {self._room}"
        )

    def _count(self, results: Sequence[Answered]) -> None:
        unanswered = sum(isinstance(each, AgentUnavailable) for each in results)
        total = self._usage.with_completions(each for each in results if isinstance(each, Completion))
        self._usage = replace(total, unanswered=total.unanswered + unanswered)
