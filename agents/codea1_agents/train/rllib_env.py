"""A group environment as RLlib's `MultiAgentEnv`. It observes only the agents that act next.

::

    from ray.tune.registry import register_env
    register_env("group", GroupMultiAgentEnv)   # env_config: the arguments of code_a1_v0.group_env
    policy_mapping_fn = lambda agent, episode: agent.partition("_")[0]

RLlib's own `ParallelPettingZooEnv` makes idle agents act. If some agents terminate and others are masked, it sets
`__all__` in neither dictionary, so the episode does not end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pettingzoo.utils.env import ParallelEnv
from ray.rllib.env.multi_agent_env import MultiAgentEnv

from codea1_env import code_a1_v0
from codea1_env.group_env import Action

_ByAgent = dict[str, Any]


class GroupMultiAgentEnv(MultiAgentEnv):  # type: ignore[misc]  # Ray has no types
    """A view of one group environment.

    It observes an agent before the agent acts, and once more when the agent is done, as RLlib requires. Testers
    without a turn are omitted. A masked reward is nan.
    """

    def __init__(
        self, config: Mapping[str, Any] | None = None, *, env: ParallelEnv[str, Mapping[str, Any], Action] | None = None
    ) -> None:
        """Make a view.

        Args:
            config: arguments of `code_a1_v0.group_env`; RLlib passes its `env_config`.
            env: the environment to view instead, of a derived class or wrapped.
        """
        super().__init__()
        self.game = env if env is not None else code_a1_v0.group_env(**(config or {}))
        self.possible_agents = list(self.game.possible_agents)
        self.agents = self.possible_agents
        self.observation_spaces = {agent: self.game.observation_space(agent) for agent in self.agents}
        self.action_spaces = {agent: self.game.action_space(agent) for agent in self.agents}
        self._acted: set[str] = set()

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[_ByAgent, _ByAgent]:
        """Start an episode; `options` are those of the group environment."""
        observations, infos = self.game.reset(seed=seed, options=options)
        self._acted = {agent for agent, info in infos.items() if info["active"]}
        return _of(self._acted, observations), _of(self._acted, infos)

    def step(self, actions: Mapping[str, Action]) -> tuple[_ByAgent, _ByAgent, _ByAgent, _ByAgent, _ByAgent]:
        """Apply the actions of the observed agents."""
        observations, rewards, terminations, truncations, infos = self.game.step(dict(actions))
        active = {agent for agent, info in infos.items() if info["active"]}
        done = {agent for agent in self._acted & rewards.keys() if terminations[agent] or truncations[agent]}
        acted, self._acted = self._acted, self._acted | active
        is_over, is_masked = not self.game.agents, all(truncations.values())
        return (
            _of(active | done, observations),
            _of(acted, rewards),
            {**_of(done, terminations), "__all__": is_over and not is_masked},
            {**_of(done, truncations), "__all__": is_over and is_masked},
            _of(active | done, infos),
        )

    def close(self) -> None:
        """Close the environment."""
        self.game.close()


def _of(agents: set[str], all_of_them: Mapping[str, Any]) -> _ByAgent:
    """Return the values of some agents, in the environment's order."""
    return {agent: value for agent, value in all_of_them.items() if agent in agents}
