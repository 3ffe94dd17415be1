"""Who answers for a role while trees are rolled out: a language model that learns, or any agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from codea1_agents.models.chat_format import ChatFormat
from codea1_agents.play.named_agent import NamedAgent
from codea1_agents.prompts import Prompts
from codea1_agents.train.grpo.rollout_engine import RolloutEngine
from codea1_agents.train.grpo.sampling import Response, SamplingRules, single_seed
from codea1_env.agent import Agent
from codea1_env.errors import AgentUnavailable, CodeA1Error
from codea1_env.rounds.rounds import Turn


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a turn."""

    text: str = ""
    prompt: tuple[int, ...] = ()
    response: Response | None = None
    """None where no model was asked."""
    unavailable: str = ""
    """Why there is no answer: nobody's fault, so the rollout is masked; empty if there is one."""

    @property
    def reply(self) -> str | AgentUnavailable:
        """What a round takes."""
        return AgentUnavailable(self.unavailable) if self.unavailable else self.text


class Player(Protocol):
    """Answers turns of one role."""

    def answer(self, turns: Sequence[Turn]) -> list[Answer]:
        """Return one answer per turn, in order."""


class ModelPlayer:
    """A causal language model, by way of an engine, with its tokenizer.

    Args:
        engine: who samples.
        chat_format: how it wants to be asked.
        end_tokens: ids that end its replies.
        prompts: the wording.
        sampling: how it replies.
        max_prompt_tokens: longest prompt; None: what the model's context has room for.
    """

    def __init__(
        self,
        engine: RolloutEngine,
        chat_format: ChatFormat,
        end_tokens: Sequence[int],
        prompts: Prompts,
        sampling: SamplingRules,
        max_prompt_tokens: int | None = None,
    ) -> None:
        self._engine, self._format, self._ends = engine, chat_format, tuple(end_tokens)
        self._prompts = prompts
        self.sampling = sampling
        self._max_prompt = max_prompt_tokens

    def answer(self, turns: Sequence[Turn]) -> list[Answer]:
        """Sample one response per turn; a prompt that leaves no room for one is not asked."""
        prompts = [tuple(self._format.prompt_ids(self._prompts.messages(t.observation, t.info))) for t in turns]
        room = self._engine.room
        faults = [_misfit(prompt, self.sampling, self._max_prompt, room) for prompt in prompts]
        asked = [position for position, fault in enumerate(faults) if not fault]
        responses = iter(
            self._engine.sample(
                [prompts[position] for position in asked],
                [turns[position].seed for position in asked],
                self._ends,
                self.sampling,
            )
        )
        return [
            Answer(unavailable=fault) if fault else self._told(prompt, next(responses))
            for prompt, fault in zip(prompts, faults, strict=True)
        ]

    def _told(self, prompt: tuple[int, ...], response: Response) -> Answer:
        return Answer(self._format.reply(response.tokens), prompt, response)


def _misfit(prompt: Sequence[int], sampling: SamplingRules, longest: int | None, room: int | None) -> str:
    """Return why a prompt cannot be asked; empty if it can."""
    if longest is not None and len(prompt) > longest:
        return f"a prompt of {len(prompt)} tokens, the longest allowed is {longest}"
    if room is not None and len(prompt) + sampling.max_tokens > room:
        return f"a prompt of {len(prompt)} tokens and a reply of {sampling.max_tokens} do not fit a context of {room}"
    return ""


class AgentPlayer:
    """An agent that does not learn here: scripted, frozen, or at the other end of a wire."""

    def __init__(self, agent: Agent, name: str) -> None:
        """Take an agent; one with `act_batch` keeps its seed, any other is reset by each turn's own."""
        self._asker = NamedAgent(agent, name, seed=None, seed_of=lambda turn: single_seed(turn.seed))

    def answer(self, turns: Sequence[Turn]) -> list[Answer]:
        """Return what the agent replies; see `NamedAgent.replies`."""
        return [
            Answer(reply) if isinstance(reply, str) else Answer(unavailable=str(reply) or "unavailable")
            for reply in self._asker.replies(turns)
        ]


class MissingPlayer:
    """Stands where an agent cannot be loaded on this machine, and fails when it has to answer.

    A runner whose constructor fails takes the reason with it: RLlib logs a traceback and goes on.
    """

    def __init__(self, error: CodeA1Error) -> None:
        self._error = error

    def answer(self, turns: Sequence[Turn]) -> list[Answer]:
        """Raise the reason."""
        raise self._error
