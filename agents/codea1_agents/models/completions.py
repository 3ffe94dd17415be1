"""Sampling settings, completions, usage totals and seeds of language models. Pure."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from codea1_env.agent import AgentContext, EndedReply, Info, Observation
from codea1_env.declared import Count, NotNegative, Range, require_declared
from codea1_env.errors import AgentUnavailable

Finish = Literal["stop", "length", "other"]
FINISHES: dict[str, Finish] = {"stop": "stop", "length": "length"}
"""By the finish reasons of OpenAI's protocol; all others mean `other`."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One reply of a model with its token counts and reasoning, which the game does not see."""

    text: str
    finish: Finish = "stop"
    """`length`: cut at the token limit; the text still counts as a reply."""
    reasoning: str = ""
    """The model's reasoning, if the server returns it separately; not part of the reply."""
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def cut(self) -> bool:
        """True iff the token limit ended it."""
        return self.finish == "length"


@dataclass(frozen=True, slots=True)
class Usage:
    """Totals of one agent."""

    completions: int = 0
    cut: int = 0
    """Completions that the token limit ended."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    retries: int = 0
    """Requests that failed and were sent again."""
    unanswered: int = 0
    """Observations without a reply."""

    def with_completions(self, completions: Iterable[Completion]) -> Usage:
        """Return the totals including these completions."""
        total = self
        for completion in completions:
            total = replace(
                total,
                completions=total.completions + 1,
                cut=total.cut + completion.cut,
                prompt_tokens=total.prompt_tokens + completion.prompt_tokens,
                completion_tokens=total.completion_tokens + completion.completion_tokens,
            )
        return total


@dataclass(frozen=True, slots=True)
class Sampling:
    """The choice of the next token."""

    temperature: NotNegative = 1.0
    """0: always the likeliest token."""
    top_p: Annotated[float, Range(above=0, most=1)] = 1.0
    """Tokens are sampled from the likeliest ones that together have this probability, in (0, 1]."""
    max_tokens: Count = 4096
    """Longest reply, in tokens."""

    def __post_init__(self) -> None:
        require_declared(self, "")

    @property
    def greedy(self) -> bool:
        """True iff the likeliest token is always chosen."""
        return self.temperature == 0


def draw_seed(seed: int, observation: Observation, info: Info) -> int:
    """Return the seed of one reply's draws, within [0, 2**31).

    It depends on nothing else, so a reply is the same in a single call and in any batch, in any order. Replies to one
    observation differ only if their infos differ (`episode_id`, or any other key): n samples need n different infos.
    """
    return int(digest([int(seed), dict(observation), dict(info)])[:8], 16) >> 1


def digest(data: Any) -> str:
    """Return the SHA-256 of plain data; the order of keys does not matter."""
    text = json.dumps(data, sort_keys=True, ensure_ascii=True, default=_plain, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _plain(value: Any) -> Any:
    """Convert numpy's scalars and arrays, without importing numpy; any other object to its text."""
    tolist = getattr(value, "tolist", None)
    if callable(tolist):
        return tolist()
    return sorted(map(str, value)) if isinstance(value, set | frozenset) else str(value)


CompletionResult = Completion | AgentUnavailable


@dataclass(frozen=True, slots=True)
class EndedCompletion:
    """A completion that has just ended, or why there is none."""

    position: int
    """Of its observation."""
    result: CompletionResult


class CompletionAgent(ABC):
    """An agent whose replies depend only on seed, observation and info."""

    stateless = True

    def __init__(self, context: AgentContext | None, seed: int | None) -> None:
        """Begin with this seed; None: with the context's."""
        self._usage = Usage()
        self.reset(context.seed if seed is None and context is not None else seed or 0)

    @property
    def usage(self) -> Usage:
        """Totals since the agent was made."""
        return self._usage

    def reset(self, seed: int) -> None:
        """Use this seed for the next replies."""
        self._seed = seed

    def act(self, observation: Observation, info: Info) -> str:
        """Return the model's reply.

        Raises:
            AgentUnavailable: no reply came, although the settings are valid.
            UserError: the settings are invalid.
        """
        return self.complete(observation, info).text

    def act_batch(self, observations: Sequence[Observation], infos: Sequence[Info]) -> list[str | AgentUnavailable]:
        """Return one reply per observation, in order; an error in place of a missing one, so that no other is lost."""
        replies = {each.position: each.reply for each in self.act_stream(observations, infos)}
        return [replies[position] for position in range(len(observations))]

    def act_stream(self, observations: Sequence[Observation], infos: Sequence[Info]) -> Iterator[EndedReply]:
        """Yield what `act_batch` returns, each reply when it ends."""
        for ended in self.complete_stream(observations, infos):
            result = ended.result
            yield EndedReply(ended.position, result.text if isinstance(result, Completion) else result)

    def complete(self, observation: Observation, info: Info) -> Completion:
        """Return the reply with its token counts and finish reason; raises as `act`."""
        (ended,) = self.complete_stream([observation], [info])
        if isinstance(ended.result, AgentUnavailable):
            raise ended.result
        return ended.result

    @abstractmethod
    def complete_stream(self, observations: Sequence[Observation], infos: Sequence[Info]) -> Iterator[EndedCompletion]:
        """Yield what `act_stream` yields, with token counts, reasoning and finish reasons."""
