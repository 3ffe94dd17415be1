"""What all agents with a language model share: a seed, totals, and replies that are texts of completions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from codea1_agents.models.completions import Completion, Usage
from codea1_env.agent import AgentContext, Info, Observation
from codea1_env.errors import AgentUnavailable

CompletionResult = Completion | AgentUnavailable


class CompletionAgent(ABC):
    """An agent whose replies depend on seed, observation and info alone."""

    stateless = True

    def __init__(self, context: AgentContext | None, seed: int | None) -> None:
        """Begin with this seed, or the context's where it is None."""
        self._usage = Usage()
        self.reset(context.seed if seed is None and context is not None else seed or 0)

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
            AgentUnavailable: there is none, though the agent and its settings are fine.
            UserError: its settings cannot work.
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

    @abstractmethod
    def complete_batch(self, observations: Sequence[Observation], infos: Sequence[Info]) -> list[CompletionResult]:
        """Return what `act_batch` does, with token counts, reasoning and end."""
