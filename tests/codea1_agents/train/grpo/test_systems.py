"""Every system of the paper is a matter of settings, and each trains: one step with tiny models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.grpo import ON_RAY, built, distance, weights_of

pytest.importorskip("ray", reason="Ray is not installed")

from codea1_agents.train.grpo import GRPOConfig
from codea1_env.errors import UserError
from codea1_env.rules.ruleset import BookUpdate, Validation, preset

pytestmark = ON_RAY


def one_step(config: GRPOConfig) -> Any:
    with built(config.training(problems_per_step=3)) as algorithm:
        before = weights_of(algorithm)
        result = algorithm.train()
        after = weights_of(algorithm)
        moved = {module: distance({module: before[module]}, {module: after[module]}) > 0 for module in before}
        return algorithm.last_trees, moved, result


FIXED = preset("fixed")
BOTH = {"coder": True, "tester": True}


def test_code_a1_with_any_alpha(config: GRPOConfig) -> None:
    rules = replace(FIXED, reward=replace(FIXED.reward, alpha=0.25))
    trees, moved, _ = one_step(config.environment(rules=rules))
    assert moved == BOTH
    rewards = [reward for each in trees[0].judged.rewards for reward in each.testers]
    weights = {part.name: part.weight for reward in rewards for part in reward.parts}
    assert (weights["validity"], weights["adversarial"]) == (0.25, 0.75)


def test_golden_needs_no_tester(config: GRPOConfig, phrase_folders: dict[str, str]) -> None:
    config.environment(rules="golden").llm_agents(coder=phrase_folders["coder"])
    trees, moved, result = one_step(config)
    assert moved == {"coder": True}
    assert all(group == () for tree in trees for group in tree.suites)
    assert 0 < result["env_runners"]["golden_pass_rate"] < 1
    assert "tester_reward" not in result["env_runners"]


def test_self_play_is_one_module_with_suites_for_all_candidates(config, phrase_folders):
    config.environment(rules="fixed", tester_view="black_box").llm_agents(shared=phrase_folders["coder"])
    config.training(suites_per="problem")
    trees, moved, _ = one_step(config)
    assert moved == {"shared": True}
    assert {tree.tester_rewards.shape for tree in trees} == {(1, 4)}
    assert all(len(each.suites) == 4 for tree in trees for each in tree.judged.report.candidates)


def test_a_frozen_tester(config: GRPOConfig, phrase_folders: dict[str, str]) -> None:
    _, moved, _ = one_step(config.llm_agents(**phrase_folders, frozen=["tester"]))
    assert moved == {"coder": True, "tester": False}


def test_without_predicted_answer(config: GRPOConfig, phrase_folders: dict[str, str]) -> None:
    config.environment(rules=replace(FIXED, validation=Validation.CALL_ONLY))
    config.llm_agents(**phrase_folders, prompts="call_only")
    trees, moved, _ = one_step(config)
    assert moved == BOTH
    suites = [suite for tree in trees for each in tree.judged.report.candidates for suite in each.suites]
    assert {case.case.prediction_right for suite in suites for case in suite.cases} == {None}


def test_black_box_and_no_mistake_book(config: GRPOConfig) -> None:
    rules = replace(FIXED, book=replace(FIXED.book, update=BookUpdate.OFF))
    _, moved, result = one_step(config.environment(rules=rules, tester_view="black_box"))
    assert moved == BOTH
    assert result["book_size"] == 0


@pytest.mark.parametrize("shape", ["candidate", "problem"])
@pytest.mark.parametrize("rules", ["cure", "utrl", "atgen", "learnability"])
def test_the_rewards_of_rivals(config: GRPOConfig, rules: str, shape: str) -> None:
    config.environment(rules=rules, tester_view="white_box" if shape == "candidate" else "black_box")
    trees, moved, result = one_step(config.training(suites_per=shape))
    assert "tester_reward" in result["env_runners"]
    # Who learns is who has groups with a spread, no more and no less.
    assert moved["coder"] == any(tree.coder.is_trained.any() for tree in trees)
    assert moved["tester"] == any(tree.tester.is_trained[tree.kept].any() for tree in trees)
    assert any(moved.values())


def test_settings_that_make_no_system_are_refused(config: GRPOConfig, phrase_folders: dict[str, str]) -> None:
    for setting, said in (
        ({"suites_per": "both"}, "suites_per should be 'candidate' or 'problem', got 'both'"),
        ({"suites_per": "problem"}, "tester_view='black_box'"),
        ({"n_suites": 0}, "n_suites: rules fixed need suites"),
    ):
        with pytest.raises(UserError, match=said):
            config.copy(copy_frozen=False).training(**setting).validate()
    with pytest.raises(UserError, match="nobody plays the tester"):
        config.copy(copy_frozen=False).llm_agents(coder=phrase_folders["coder"]).validate()
