"""Random policies play the bank game through the collectors of the libraries that are installed."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from codea1_env import bank_v0

STEPS = 20


@pytest.fixture
def payoffs(judged) -> set[tuple[float, float]]:
    """All pairs of rewards that a round can have."""
    found = judged.payoffs()
    return set(zip(found.coder.ravel().round(6), found.tester.ravel().round(6), strict=True))


def pairs_of(coder: Any, tester: Any) -> set[tuple[float, float]]:
    both = (np.asarray(each, np.float64).ravel().round(6) for each in (coder, tester))
    return set(zip(*both, strict=True))


def test_equal_actions_repeat_the_first_ones(judged):
    env, plain = bank_v0.raw_env(judged, equal_actions=True), bank_v0.raw_env(judged)
    coder, tester = map(env.action_space, env.possible_agents)
    assert coder == tester
    n_programs = int(plain.action_space("coder_0").n)
    assert n_programs < coder.n  # else there is nothing to repeat
    for suite in range(int(tester.n)):
        rewards = []
        for game, program in ((env, n_programs), (plain, 0)):
            game.reset(seed=0)
            game.step(program)
            game.step(suite)
            rewards.append(dict(game.rewards))
        assert rewards[0] == rewards[1]


def test_supersuit_stacks_it(judged, payoffs):
    supersuit = pytest.importorskip("supersuit", reason="SuperSuit is not installed")
    env = bank_v0.blind_parallel_env(bank=judged, infos=False, equal_actions=True)
    stacked = supersuit.concat_vec_envs_v1(supersuit.pettingzoo_env_to_vec_env_v1(env), 2, base_class="gymnasium")
    stacked.reset(seed=0)
    for _ in range(STEPS):
        _, rewards, *_ = stacked.step(np.array([stacked.action_space.sample() for _ in range(4)]))
        assert pairs_of(rewards[::2], rewards[1::2]) <= payoffs
    stacked.close()


@pytest.mark.models
@pytest.mark.filterwarnings("ignore")  # of torchrl
def test_torchrl_collects_it(judged, payoffs):
    pytest.importorskip("torchrl", reason="torchrl is not installed")
    from torchrl.collectors import Collector
    from torchrl.envs import check_env_specs
    from torchrl.envs.libs.pettingzoo import PettingZooWrapper

    check_env_specs(PettingZooWrapper(bank_v0.env(bank=judged, infos=False), use_mask=True))
    env = PettingZooWrapper(
        bank_v0.blind_parallel_env(bank=judged, infos=False), group_map={"coder": ["coder_0"], "tester": ["tester_0"]}
    )
    check_env_specs(env)
    collector = Collector(env, None, frames_per_batch=STEPS, total_frames=STEPS)
    (batch,) = list(collector)
    rewards = [batch["next", role, "reward"].numpy() for role in ("coder", "tester")]
    assert rewards[0].size == STEPS
    assert pairs_of(*rewards) <= payoffs
    collector.shutdown()


@pytest.mark.models
@pytest.mark.filterwarnings("ignore")  # of Tianshou
def test_tianshou_collects_it(judged, payoffs):
    pytest.importorskip("tianshou", reason="Tianshou is not installed (its own environment: make adapters-test)")
    from tianshou.algorithm.multiagent.marl import MultiAgentOffPolicyAlgorithm
    from tianshou.algorithm.random import MARLRandomDiscreteMaskedOffPolicyAlgorithm as RandomAlgorithm
    from tianshou.data import Collector, VectorReplayBuffer
    from tianshou.env import DummyVectorEnv, PettingZooEnv

    def make() -> Any:
        return PettingZooEnv(bank_v0.env(bank=judged, infos=False, equal_actions=True))

    env = make()
    both = [RandomAlgorithm(env.action_space) for _ in env.agents]
    collector = Collector(
        MultiAgentOffPolicyAlgorithm(algorithms=both, env=env), DummyVectorEnv([make, make]), VectorReplayBuffer(200, 2)
    )
    collector.reset()
    collector.collect(n_episode=STEPS)
    last = collector.buffer[:].done
    rewards = collector.buffer[:].rew[last]
    assert len(rewards) == STEPS
    assert pairs_of(rewards[:, 0], rewards[:, 1]) <= payoffs


@pytest.mark.models
@pytest.mark.filterwarnings("ignore")  # of AgileRL
def test_agilerl_steps_it_in_processes(judged, payoffs):
    pytest.importorskip("agilerl", reason="AgileRL is not installed (its own environment: make adapters-test)")
    from agilerl.vector.pz_async_vec_env import AsyncPettingZooVecEnv

    env = AsyncPettingZooVecEnv([partial(bank_v0.blind_parallel_env, bank=judged, infos=False)] * 2)
    env.reset(seed=0)
    for _ in range(STEPS):
        actions = {agent: np.array([env.single_action_space(agent).sample() for _ in range(2)]) for agent in env.agents}
        _, rewards, *_ = env.step(actions)
        assert pairs_of(rewards["coder_0"], rewards["tester_0"]) <= payoffs
    env.close()


@pytest.mark.models
@pytest.mark.filterwarnings("ignore")  # of RLlib
@pytest.mark.parametrize("is_parallel", [True, False])
def test_rllibs_wrappers_take_it(judged, payoffs, is_parallel):
    pytest.importorskip("ray.rllib", reason="the extra rllib is not installed")
    from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv, PettingZooEnv

    options = {"bank": judged, "infos": False}
    env = (
        ParallelPettingZooEnv(bank_v0.blind_parallel_env(**options))
        if is_parallel
        else PettingZooEnv(bank_v0.env(**options))
    )
    for seed in range(STEPS):
        seen, _ = env.reset(seed=seed)
        rewards, over = {}, False
        while not over:
            seen, now, ended, *_ = env.step({agent: env.get_action_space(agent).sample() for agent in seen})
            rewards |= now
            over = ended["__all__"]
        assert pairs_of([rewards["coder_0"]], [rewards["tester_0"]]) <= payoffs
