"""Who answers for a role while trees are rolled out: a language model that learns, or any agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from codea1_agents.grpo.sampling import Response, SamplingRules, sample_responses
from codea1_agents.models.chat_format import ChatFormat
from codea1_agents.prompts import Prompts
from codea1_env.agent import Agent, Info, Observation
from codea1_env.errors import AgentUnavailable

__all__ = ["AgentPlayer", "Answer", "ModelPlayer", "Player", "Turn"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One reply that is wanted."""

    observation: Observation
    info: Info
    seed: tuple[int, ...]
    """What the randomness of the reply descends from."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a turn."""

    text: str = ""
    prompt: tuple[int, ...] = ()
    response: Response | None = None
    """None where no model was asked."""
    unavailable: str = ""
    """Why there is no answer: nobody's fault, so the rollout is masked; empty if there is one."""


class Player(Protocol):
    """Answers turns of one role."""

    def answer(self, turns: Sequence[Turn]) -> list[Answer]:
        """Return one answer per turn, in order."""


class ModelPlayer:
    """A causal language model with its tokenizer.

    Args:
        model: of `transformers`.
        chat_format: how it wants to be asked.
        end_tokens: ids that end its replies.
        prompts: the wording.
        sampling: how it replies.
    """

    def __init__(
        self, model: Any, chat_format: ChatFormat, end_tokens: Sequence[int], prompts: Prompts, sampling: SamplingRules
    ) -> None:
        self._model, self._format, self._ends = model, chat_format, tuple(end_tokens)
        self._prompts = prompts
        self.sampling = sampling

    def answer(self, turns: Sequence[Turn]) -> list[Answer]:
        """Sample one response per turn; a prompt that leaves no room for one is not asked."""
        prompts = [tuple(self._format.prompt_ids(self._prompts.messages(t.observation, t.info))) for t in turns]
        room = getattr(self._model.config, "max_position_embeddings", None)
        fits = [room is None or len(prompt) + self.sampling.max_tokens <= room for prompt in prompts]
        asked = [position for position, is_short in enumerate(fits) if is_short]
        responses = iter(
            sample_responses(
                self._model,
                [prompts[position] for position in asked],
                [turns[position].seed for position in asked],
                end_tokens=self._ends,
                pad_token=0,
                rules=self.sampling,
            )
        )
        return [
            self._told(prompt, next(responses))
            if is_short
            else Answer(unavailable=_too_long(prompt, self.sampling, room))
            for prompt, is_short in zip(prompts, fits, strict=True)
        ]

    def _told(self, prompt: tuple[int, ...], response: Response) -> Answer:
        return Answer(self._format.reply(response.tokens), prompt, response)


def _too_long(prompt: Sequence[int], sampling: SamplingRules, room: int | None) -> str:
    return f"a prompt of {len(prompt)} tokens and a reply of {sampling.max_tokens} do not fit a context of {room}"


class AgentPlayer:
    """An agent that does not learn here: scripted, frozen, or at the other end of a wire."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def answer(self, turns: Sequence[Turn]) -> list[Answer]:
        """Ask for all turns at once where the agent can answer so, else one by one with their own seeds."""
        batch = getattr(self._agent, "act_batch", None)
        if callable(batch):
            replies = batch([turn.observation for turn in turns], [turn.info for turn in turns])
            return [_answered(reply) for reply in replies]
        return [self._alone(turn) for turn in turns]

    def _alone(self, turn: Turn) -> Answer:
        reset = getattr(self._agent, "reset", None)
        if callable(reset):
            reset(_single(turn.seed))
        try:
            return _answered(self._agent.act(turn.observation, turn.info))
        except AgentUnavailable as error:
            return _answered(error)


def _answered(reply: object) -> Answer:
    return (
        Answer(unavailable=str(reply) or "unavailable") if isinstance(reply, AgentUnavailable) else Answer(str(reply))
    )


def _single(seed: Sequence[int]) -> int:
    """Return one number for agents that take only one."""
    return int(np.random.SeedSequence(list(seed)).generate_state(1, np.uint64)[0] >> np.uint64(11))
