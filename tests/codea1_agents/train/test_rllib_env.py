"""The group as RLlib sees it: who is observed, when an episode ends, what its episodes make of it."""

from __future__ import annotations

import math
from typing import Any

import pytest

pytest.importorskip("ray", reason="Ray is not installed")
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.rl_module import RLModule, RLModuleSpec
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
from ray.rllib.utils.pre_checks.env import check_multiagent_environments
from ray.tune.registry import register_env

from codea1_agents.train.rllib_env import GroupMultiAgentEnv
from codea1_env import ProblemSet, code_a1_v0
from tests.support.toys import BROKEN, GONE, RIGHT

SUITE = "```python\nassert add(1, 3) == 4\n```"


@pytest.fixture
def config(toys: ProblemSet) -> dict[str, Any]:
    return {"problems": toys.select(["toy/add"]), "n_candidates": 2, "n_suites": 2}


@pytest.mark.parametrize(
    "options", [{}, {"suites_per": "problem"}, {"skip_invalid": False}, {"n_suites": 0}, {"max_cycles": 3}]
)
def test_rllibs_own_check(config, options):
    check_multiagent_environments(GroupMultiAgentEnv({**config, **options}))


def episode(env: GroupMultiAgentEnv, *steps: dict[str, Any]) -> MultiAgentEpisode:
    """Play an episode and return RLlib's record of it."""
    found = MultiAgentEpisode(
        observation_space=env.observation_spaces,
        action_space=env.action_spaces,
        agent_to_module_mapping_fn=lambda agent, _: agent.partition("_")[0],
    )
    observations, infos = env.reset(seed=0)
    found.add_env_reset(observations=observations, infos=infos)
    for actions in steps:
        assert set(actions) == set(observations)
        observations, rewards, terminateds, truncateds, infos = env.step(actions)
        found.add_env_step(observations, actions, rewards, infos, terminateds=terminateds, truncateds=truncateds)
    return found


def test_only_who_is_to_act_is_observed_and_testers_without_a_turn_are_never_mentioned(config):
    env = GroupMultiAgentEnv(config)
    coders, testers = {"coder_0": RIGHT, "coder_1": BROKEN}, {"tester_0_0": SUITE, "tester_0_1": GONE}
    played = episode(env, coders, testers)
    assert played.is_done
    assert {agent: len(each) for agent, each in played.agent_episodes.items()} == dict.fromkeys(coders | testers, 1)
    assert played.agent_episodes["tester_0_0"].module_id == "tester"
    returns = {agent: each.get_return() for agent, each in played.agent_episodes.items()}
    assert {agent for agent, each in returns.items() if math.isnan(each)} == {"coder_0", "tester_0_1"}
    assert returns["coder_1"] == 0.0
    assert 0 < returns["tester_0_0"] < 1
    assert played.agent_episodes["coder_0"].is_truncated
    assert not played.agent_episodes["coder_1"].is_truncated


def test_the_episode_ends_when_nobody_is_left_whoever_was_masked(config, broken_sandbox):
    env = GroupMultiAgentEnv(config)
    env.reset()
    *_, terminateds, truncateds, _ = env.step({"coder_0": RIGHT, "coder_1": RIGHT})
    assert (terminateds, truncateds) == ({"__all__": False}, {"__all__": False})
    actions = dict.fromkeys(["tester_0_0", "tester_0_1", "tester_1_0"], SUITE) | {"tester_1_1": GONE}
    *_, terminateds, truncateds, _ = env.step(actions)
    assert (terminateds["__all__"], truncateds["__all__"]) == (True, False)
    assert truncateds["tester_1_1"]
    env = GroupMultiAgentEnv({**config, "sandbox": broken_sandbox})
    env.reset()
    *_, terminateds, truncateds, _ = env.step({"coder_0": RIGHT, "coder_1": RIGHT})
    assert (terminateds["__all__"], truncateds["__all__"]) == (False, True)


def test_an_environment_of_ones_own_is_viewed(config):
    class Paying(code_a1_v0.group_env):
        def step(self, actions: Any) -> Any:
            observations, rewards, *rest = super().step(actions)
            return observations, {agent: reward + 1 for agent, reward in rewards.items()}, *rest

    played = episode(GroupMultiAgentEnv(env=Paying(**config)), {"coder_0": BROKEN, "coder_1": "no code"})
    assert played.is_terminated  # with the coders' step, since no program loads
    assert {agent: each.get_return() for agent, each in played.agent_episodes.items()} == {"coder_0": 1, "coder_1": 1}


class Replies(RLModule):
    """Coders write a program that loads where they are the first of their group; testers write one suite."""

    def setup(self) -> None:
        """Nothing to build."""

    def get_initial_state(self) -> dict[str, Any]:
        return {}

    def _forward(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
        replies = {"coder_0": RIGHT, "coder_1": BROKEN}
        return {Columns.ACTIONS: [replies.get(agent, SUITE) for agent in batch["agents"]]}


class TextsByModule(ConnectorV2):
    """Hands each module the observations of its agents as they are; RLlib's own connectors make tensors of them."""

    def __call__(self, *, episodes: list[MultiAgentEpisode], shared_data: Any, **_: Any) -> dict[str, Any]:
        batch: dict[str, Any] = {}
        for index, played in enumerate(episodes):
            for agent in [] if played.is_done else played.get_agents_to_act():
                of_module = batch.setdefault(played.module_for(agent), {Columns.OBS: [], "agents": [], "envs": []})
                of_module[Columns.OBS] += [played.get_observations(-1, agent_ids=[agent])[agent]]
                of_module["agents"] += [agent]
                of_module["envs"] += [index]
        shared_data["acting"] = batch
        return batch


class RepliesToEnvironments(ConnectorV2):
    def __call__(self, *, batch: Any, episodes: list[Any], shared_data: Any, **_: Any) -> dict[str, Any]:
        actions: list[dict[str, str]] = [{} for _ in episodes]
        for module, acting in shared_data["acting"].items():
            replies = batch[module][Columns.ACTIONS]
            for index, agent, reply in zip(acting["envs"], acting["agents"], replies, strict=True):
                actions[index][agent] = reply
        return {Columns.ACTIONS: actions}


class RepliesConfig(AlgorithmConfig):
    def get_default_rl_module_spec(self) -> RLModuleSpec:
        return RLModuleSpec(module_class=Replies)


def test_rllibs_own_runner_plays_it_with_a_module_for_each_role(config):
    register_env("group", GroupMultiAgentEnv)
    settings = (
        RepliesConfig()
        .environment("group", env_config=config)
        .multi_agent(policies={"coder", "tester"}, policy_mapping_fn=lambda agent, _: agent.partition("_")[0])
        .env_runners(
            num_env_runners=0,
            num_envs_per_env_runner=2,
            env_to_module_connector=lambda env, spaces, device: TextsByModule(),
            module_to_env_connector=lambda env, spaces: RepliesToEnvironments(),
            add_default_connectors_to_env_to_module_pipeline=False,
            add_default_connectors_to_module_to_env_pipeline=False,
        )
    )
    runner = MultiAgentEnvRunner(config=settings)
    played = runner.sample(num_episodes=4)
    runner.stop()
    returns = [{agent: each.get_return() for agent, each in game.agent_episodes.items()} for game in played]
    assert [game.is_terminated for game in played] == [True] * 4
    assert returns == [returns[0]] * 4
    assert set(returns[0]) == {"coder_0", "coder_1", "tester_0_0", "tester_0_1"}
    assert (returns[0]["coder_0"], returns[0]["coder_1"]) == (1.0, 0.0)
