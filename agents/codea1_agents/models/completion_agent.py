"""The base class of all agents with a language model: a seed, usage totals, and completions as replies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from codea1_agents.models.completions import Completion, Usage
from codea1_env.agent import AgentContext, Info, Observation
from codea1_env.errors import AgentUnavailable

CompletionResult = Completion | AgentUnavailable


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
        found = self.complete_batch(observations, infos)
        return [each.text if isinstance(each, Completion) else each for each in found]

    def complete(self, observation: Observation, info: Info) -> Completion:
        """Return the reply with its token counts and finish reason; raises as `act`."""
        found = self.complete_batch([observation], [info])[0]
        if isinstance(found, AgentUnavailable):
            raise found
        return found

    @abstractmethod
    def complete_batch(self, observations: Sequence[Observation], infos: Sequence[Info]) -> list[CompletionResult]:
        """Return what `act_batch` returns, with token counts, reasoning and finish reasons."""
