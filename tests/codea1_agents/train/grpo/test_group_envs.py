"""Environments of the user's own: what they pay and show is what is trained on."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.support.grpo import ON_RAY, Place, built, one_step

pytest.importorskip("ray", reason="Ray is not installed")

from pettingzoo.utils import BaseParallelWrapper
from ray.tune.registry import register_env

from codea1_agents.train.grpo import GRPOConfig
from codea1_agents.train.grpo.advantages import group_advantages, top_variance
from codea1_agents.train.grpo.rollout import ModelPlayer, RolledTree
from codea1_env import code_a1_v0
from codea1_env.errors import UserError

pytestmark = ON_RAY

PROBLEM, BONUS = "toy/1", 0.3


def paid_more(agent: str, base: Any = code_a1_v0.group_env) -> Any:
    """A class of environments that pay one agent more than the rules do, in one problem."""

    class PaidMore(base):  # local, so that it travels to workers as it is
        def step(self, actions: Any) -> Any:
            observations, rewards, *rest = super().step(actions)
            inner = self.unwrapped
            if inner.last_tree is not None and inner.tree.problem.id == PROBLEM and agent in rewards:
                rewards[agent] += BONUS
            return observations, rewards, *rest

    return PaidMore


def wrapped(agent: str) -> Any:
    """The same as a PettingZoo wrapper around the project's own environment."""
    wrapper = paid_more(agent, BaseParallelWrapper)
    return lambda arguments: wrapper(code_a1_v0.group_env(**arguments))


def advantages_of(tree: RolledTree, coder: Any, tester: Any) -> dict[Place, float]:
    """What must be learnt from a tree with these rewards."""
    values, found = group_advantages(coder), {}
    for n in np.flatnonzero(values.is_trained):
        found[tree.task.problem_id, f"coder_{n}"] = values.values[n]
    values, kept = group_advantages(tester), top_variance(tester, 6)
    for g, m in np.argwhere(values.is_trained & kept[:, np.newaxis]):
        found[tree.task.problem_id, f"tester_{g}_{m}"] = values.values[g, m]
    return found


@pytest.mark.parametrize(
    ("kind", "agent", "runners"),
    [
        *product(["class", "name", "wrapper"], ["coder_2", "tester"], [0]),
        ("class", "coder_2", 1),
        ("wrapper", "coder_2", 1),
    ],
)
def test_a_reward_that_an_environment_changes_changes_that_advantage_and_no_other_groups(
    config: GRPOConfig, learnt: dict[Place, float], kind: str, agent: str, runners: int
) -> None:
    trees, before = one_step(config, learnt)
    (tree,) = [each for each in trees if each.task.problem_id == PROBLEM]
    coder, tester = tree.coder_rewards.copy(), tree.tester_rewards.copy()
    if agent == "tester":
        g = int(np.flatnonzero(~np.isnan(tester).any(axis=1))[0])
        agent, group = f"tester_{g}_1", {f"tester_{g}_{m}" for m in range(4)}
        tester[g, 1] += BONUS
    else:
        group = {f"coder_{n}" for n in range(6)}
        coder[2] += BONUS
    derived, name = paid_more(agent), f"{kind}-{agent}"
    register_env(name, wrapped(agent) if kind == "wrapper" else lambda arguments: derived(**arguments))
    config.environment(env=derived if kind == "class" else name)
    _, after = one_step(config, learnt, runners)
    assert {place: a for place, a in after.items() if place[0] == PROBLEM} == pytest.approx(
        advantages_of(tree, coder, tester), abs=1e-6
    )
    found, expected = ({p: a for p, a in of.items() if p not in product([PROBLEM], group)} for of in (after, before))
    assert found == expected
    assert after[PROBLEM, agent] > before.get((PROBLEM, agent), 0.0) + 0.1


def test_models_see_what_the_environment_shows(config: GRPOConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    class Shown(code_a1_v0.group_env):  # type: ignore[misc,valid-type]
        def reset(self, seed: Any = None, options: Any = None) -> Any:
            observations, infos = super().reset(seed, options)
            return {agent: {**each, "problem": "ANOTHER"} for agent, each in observations.items()}, infos

    seen = []
    answer = ModelPlayer.answer
    monkeypatch.setattr(
        ModelPlayer, "answer", lambda self, turns, *on_end: seen.append(turns) or answer(self, turns, *on_end)
    )
    with built(config.environment(env=Shown).training(problems_per_step=1)) as algorithm:
        algorithm.train()
    coders, testers = seen
    assert {turn.observation["problem"] for turn in coders} == {"ANOTHER"}
    assert "ANOTHER" not in {turn.observation["problem"] for turn in testers}


def test_what_is_no_group_environment_and_arguments_that_are_settings_are_refused(config: GRPOConfig) -> None:
    for env, said in (("unknown", "'unknown'"), (dict, "<class 'dict'>")):
        with pytest.raises(UserError, match=f"environment: {said}"):
            config.copy(copy_frozen=False).environment(env=env).validate()
    register_env("none", lambda arguments: object())
    with pytest.raises(UserError, match="environment: 'none'"):
        config.copy(copy_frozen=False).environment(env="none").build_algo()
    with pytest.raises(UserError, match=r"env_config sets 'rules', which is environment\(rules=...\)"):
        config.environment(env_config={"rules": "paper"}).validate()
