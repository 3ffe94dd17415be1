"""Players of a role in rollouts: a language model of the training, or any agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from codea1_agents.models.chat_format import ChatFormat
from codea1_agents.play.named_agent import NamedAgent
from codea1_agents.prompts import Prompts
from codea1_agents.train.grpo.sampling import Response, ResponseSize, RolloutEngine, SamplingRules, single_seed
from codea1_env.agent import Agent
from codea1_env.errors import AgentUnavailable
from codea1_env.rounds.rounds import Turn


@dataclass(frozen=True, slots=True)
class Answer:
    """The reply to a turn, or the reason why there is none."""

    text: str = ""
    prompt: tuple[int, ...] = ()
    response: Response | ResponseSize | None = None
    """None where no model of the training sampled it; its size in a tree that left its runner and does not train it."""
    token_advantages: Sequence[float] | None = None
    """(n_tokens,) once it is judged, where its tokens are paid for different things; else None."""
    unavailable: str = ""
    """Why there is no reply; empty if there is one. It is not the agent's fault, so the rollout is masked."""

    @property
    def reply(self) -> str | AgentUnavailable:
        """What the environment's `step` takes."""
        return AgentUnavailable(self.unavailable) if self.unavailable else self.text


class Player(Protocol):
    """Replies to the turns of one role."""

    def answer(self, turns: Sequence[Turn]) -> list[Answer]:
        """Return one answer per turn, in order."""

    def starts(self, answer: Answer) -> Sequence[int]:
        """Return where each token of an answer begins in its text; () if no model of the training sampled it."""


class ModelPlayer:
    """A causal language model, with its engine and its tokenizer.

    Args:
        engine: samples the responses.
        chat_format: turns messages into prompt tokens.
        end_tokens: ids that end a response.
        prompts: the wording.
        sampling: how the engine samples.
        max_prompt_tokens: longest prompt; None: only the model's context limits it.
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
        """Sample one response per turn. A prompt that is too long gets none: its answer is `unavailable`."""
        prompts = [tuple(self._format.prompt_ids(self._prompts.messages(t.observation, t.info))) for t in turns]
        context = self._engine.context_length
        faults = [_length_fault(prompt, self.sampling, self._max_prompt, context) for prompt in prompts]
        sampled = [position for position, fault in enumerate(faults) if not fault]
        responses = iter(
            self._engine.sample(
                [prompts[position] for position in sampled],
                [turns[position].seed for position in sampled],
                self._ends,
                self.sampling,
            )
        )
        found = []
        for prompt, fault in zip(prompts, faults, strict=True):
            if fault:
                found.append(Answer(unavailable=fault))
            else:
                response = next(responses)
                found.append(Answer(self._format.reply(response.tokens), prompt, response))
        return found

    def starts(self, answer: Answer) -> Sequence[int]:
        """Return where each token begins in the text."""
        assert isinstance(answer.response, Response)
        return self._format.starts(answer.response.tokens)


def _length_fault(prompt: Sequence[int], sampling: SamplingRules, longest: int | None, context: int | None) -> str:
    """Return why a prompt is too long; empty if it is not."""
    if longest is not None and len(prompt) > longest:
        return f"a prompt of {len(prompt)} tokens, the longest allowed is {longest}"
    if context is not None and len(prompt) + sampling.max_tokens > context:
        reply = sampling.max_tokens
        return f"a prompt of {len(prompt)} tokens and a reply of {reply} do not fit a context of {context}"
    return ""


class AgentPlayer:
    """An agent that this training does not train: scripted, frozen or remote."""

    def __init__(self, agent: Agent, name: str) -> None:
        """Wrap an agent. An agent with `act_batch` keeps its seed; any other is reset with the seed of each turn."""
        self._asker = NamedAgent(agent, name, seed=None, seed_of=lambda turn: single_seed(turn.seed))

    def answer(self, turns: Sequence[Turn]) -> list[Answer]:
        """Return the agent's replies; see `NamedAgent.replies`."""
        return [
            Answer(reply) if isinstance(reply, str) else Answer(unavailable=str(reply) or "unavailable")
            for reply in self._asker.replies(turns)
        ]

    def starts(self, answer: Answer) -> Sequence[int]:
        """Return (): an agent is not trained."""
        return ()
