"""A sampled response as RLlib's episode: one step, whose action is the whole response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from codea1_agents.train.grpo.sampling import Response
from codea1_env.group_env import coder_name, tester_name


@dataclass(frozen=True, slots=True)
class ScoredResponse:
    """One reply of one role, with its reward and its advantage."""

    role: str
    """`coder` or `tester`."""
    module: str
    """Id of the module that wrote it and that it trains."""
    problem_id: str
    candidate: int
    """Number of the candidate in the group of its problem; 0 for a suite that tests all candidates."""
    suite: int
    """Number of the suite in its group; -1 for a candidate."""
    prompt: tuple[int, ...]
    response: Response
    reward: float
    """nan: masked."""
    advantage: float
    weights_version: int
    """Of the weights that sampled it."""
    token_weight: float = 0.0
    """Weight of each of its tokens in the loss. `planned` sets it, as it depends on the whole batch."""
    minibatch: int = 0
    """Number of its optimiser step in an epoch. `planned` sets it."""

    @property
    def agent(self) -> str:
        """Name in the environment."""
        return coder_name(self.candidate) if self.suite < 0 else tester_name(self.candidate, self.suite)


def episode_of(scored: ScoredResponse) -> SingleAgentEpisode:
    """Return the response as an episode that holds everything the learner needs."""
    episode = SingleAgentEpisode(agent_id=scored.agent, module_id=scored.module)
    episode.add_env_reset(observation=np.asarray(scored.prompt, dtype=np.int32))
    episode.add_env_step(
        observation=np.zeros(0, dtype=np.int32),
        action=np.asarray(scored.response.tokens, dtype=np.int32),
        reward=scored.reward,
        terminated=True,
    )
    episode.custom_data["response"] = scored
    return episode


def response_of(episode: Any) -> ScoredResponse:
    """Return the response that `episode_of` stored in an episode."""
    scored = episode.custom_data["response"]
    assert isinstance(scored, ScoredResponse)
    return scored
