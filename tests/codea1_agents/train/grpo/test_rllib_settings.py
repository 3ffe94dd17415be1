"""RLlib's settings, in RLlib's idiom: each has an effect or is refused with one sentence, as docs/training.md says."""

from __future__ import annotations

import copy
import math
import os
import pickle
import re
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codea1_env.errors import UserError
from codea1_env.group_env import GroupEnv
from codea1_env.rounds.rounds import SuitesPer
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox import Limits
from tests.support.grpo import ON_RAY, built, distance, learner_of, scored, specs_of, weights_of

pytest.importorskip("ray", reason="Ray is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")
from ray import tune  # noqa: E402
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig  # noqa: E402
from ray.rllib.callbacks.callbacks import RLlibCallback  # noqa: E402
from ray.rllib.connectors.connector_v2 import ConnectorV2  # noqa: E402
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec  # noqa: E402
from ray.rllib.core.rl_module.rl_module import RLModuleSpec  # noqa: E402
from ray.rllib.core.rl_module.torch import TorchRLModule  # noqa: E402

from codea1_agents.train.grpo import GRPO, GRPOConfig, ModelSettings  # noqa: E402
from codea1_agents.train.grpo.batch import planned  # noqa: E402
from codea1_agents.train.grpo.config import ByRole  # noqa: E402
from codea1_agents.train.grpo.learner import GRPOTorchLearner  # noqa: E402
from codea1_agents.train.grpo.rl_module import CausalLMModule  # noqa: E402
from codea1_agents.train.grpo.rllib_settings import (  # noqa: E402
    _CHECKS,
    _NOT_USED_BY_LEARNER,
    OF_EVALUATIONS,
    PER_MODULE,
    REFUSED,
    attribute_of,
)

pytestmark = ON_RAY
PAGE = Path(__file__).parents[4] / "docs" / "training.md"


def after_one_step(config: GRPOConfig) -> tuple[dict[str, Any], Any]:
    with built(config) as algorithm:
        return algorithm.train(), weights_of(algorithm)


@pytest.fixture
def before(config: GRPOConfig) -> Any:
    """Weights of an algorithm that has not learnt."""
    with built(config) as algorithm:
        return weights_of(algorithm)


# -- honoured --------------------------------------------------------------------------------------


def test_only_policies_to_train_learn(config: GRPOConfig, before: Any) -> None:
    result, after = after_one_step(config.multi_agent(policies_to_train=["coder"]))
    assert distance({"tester": before["tester"]}, {"tester": after["tester"]}) == 0
    assert distance(before, after) > 0
    assert "loss" in result["learners"]["coder"]
    assert "loss" not in result["learners"]["tester"]


class Scaling(CausalLMModule):
    """A module that trains with slightly other log-probabilities than it computes."""

    def _forward_train(self, batch: Any, **more: Any) -> Any:
        found = super()._forward_train(batch, **more)
        return {**found, "log_probs": 1.0002 * found["log_probs"]}


OWN = RLModuleSpec(module_class=Scaling)


@pytest.mark.parametrize(
    ("spec", "own"),
    [
        (OWN, {"coder", "tester"}),
        (MultiRLModuleSpec(rl_module_specs={"tester": OWN}), {"tester"}),
    ],
)
def test_a_class_derived_from_the_module_s_trains_and_samples(config: GRPOConfig, spec: Any, own: set[str]) -> None:
    with built(config.rl_module(rl_module_spec=spec)) as algorithm:
        learners = algorithm.train()["learners"]
        kinds = {name: type(algorithm.get_module(name)) for name in ("coder", "tester")}
    assert {name for name, kind in kinds.items() if kind is Scaling} == own
    assert {name for name in kinds if learners[name]["sampler_gap"] > 1e-5} == own


class Penalising(GRPOTorchLearner):
    """GRPO's loss and a term, as RLlib's examples add one."""

    def compute_loss_for_module(self, *, module_id: str, config: Any, batch: Any, fwd_out: Any) -> Any:
        loss = super().compute_loss_for_module(module_id=module_id, config=config, batch=batch, fwd_out=fwd_out)
        weight = batch["response_mask"] * batch["token_weight"].unsqueeze(-1)
        log_probs = torch.where(weight > 0, fwd_out["log_probs"], 0.0)
        term = -config.learner_config_dict["scale"] * (log_probs * weight).sum()
        self.metrics.log_value((module_id, "penalty"), float(term.detach()), reduce="sum")
        return loss + term


class Replacing(GRPOTorchLearner):
    """Another loss altogether."""

    def compute_loss_for_module(self, *, batch: Any, fwd_out: Any, **_: Any) -> Any:
        return (torch.where(batch["response_mask"], fwd_out["log_probs"], 0.0) ** 2).sum() * 0.0


def test_a_learner_adds_a_term_to_the_loss(config: GRPOConfig) -> None:
    def with_term(config: GRPOConfig, scale: float, **settings: Any) -> tuple[dict[str, Any], Any]:
        own = config.copy(copy_frozen=False).training(**settings)
        return after_one_step(own.learners(learner_class=Penalising, learner_config_dict={"scale": scale}))

    _, plain = after_one_step(config.copy(copy_frozen=False))
    _, nothing = with_term(config, 0.0)
    assert distance(plain, nothing) == 0
    result, added = with_term(config, 1.0)
    of_coder = result["learners"]["coder"]
    assert distance(plain, added) > 1e-4
    assert of_coder["penalty"] > 0
    assert of_coder["loss"] == pytest.approx(of_coder["policy_loss"] + of_coder["penalty"], abs=1e-4)
    _, in_parts = with_term(config, 1.0, micro_batch_size=1)
    assert distance(added, in_parts) < 1e-5  # the parts of a step add up
    _, by_two = with_term(config.learners(num_learners=2, num_cpus_per_learner=0.5), 1.0)
    assert distance(added, by_two) < 1e-5


def test_a_learner_replaces_the_loss(config: GRPOConfig, before: Any) -> None:
    config.training(weight_decay=0.0).learners(learner_class=Replacing)
    result, after = after_one_step(config)
    assert result["learners"]["coder"]["loss"] == 0
    assert "policy_loss" not in result["learners"]["coder"]
    assert distance(before, after) == 0


class HalfAdvantages(ConnectorV2):  # type: ignore[misc]  # Ray has no types
    """Changes responses, and adds a column."""

    def __call__(self, *, episodes: list[Any], batch: Any, **_: Any) -> Any:
        episodes[:] = [replace(each, advantage=each.advantage / 2) for each in episodes]
        n_coder = sum(each.module == "coder" for each in episodes)
        return {**batch, "coder": {"mark": torch.ones(n_coder)}}


class WithColumn(GRPOTorchLearner):
    def compute_loss_for_module(self, *, module_id: str, batch: Any, **more: Any) -> Any:
        self.metrics.log_value((module_id, "marks"), float(batch.get("mark", torch.zeros(1)).sum()), reduce="sum")
        return super().compute_loss_for_module(module_id=module_id, batch=batch, **more)


def test_learner_connectors_run_before_ours(config: GRPOConfig, learnt: dict[Any, float]) -> None:
    after_one_step(config.copy(copy_frozen=False))
    whole = dict(learnt)
    learnt.clear()
    config.learners(learner_class=WithColumn, learner_connector=lambda *_: [HalfAdvantages()])
    result, _ = after_one_step(config)
    assert learnt == {place: pytest.approx(advantage / 2) for place, advantage in whole.items()}
    n_coders, n_testers = (sum(agent.startswith(role) for _, agent in learnt) for role in ("coder", "tester"))
    assert result["learners"]["coder"]["marks"] == result["responses_trained"] - n_testers >= n_coders


class Emptying(ConnectorV2):  # type: ignore[misc]  # Ray has no types
    def __call__(self, *, episodes: list[Any], batch: Any, **_: Any) -> Any:
        episodes.clear()
        return batch


class Short(ConnectorV2):  # type: ignore[misc]  # Ray has no types
    def __call__(self, *, batch: Any, **_: Any) -> Any:
        return {"coder": {"mark": torch.ones(1)}}


@pytest.mark.parametrize(
    ("kind", "sentence"), [(Emptying, "left no response to learn from"), (Short, "column 'mark' has 1 rows, not")]
)
def test_a_learner_connector_s_fault_is_one_sentence(config: GRPOConfig, kind: type[Any], sentence: str) -> None:
    config.training(learner_connector=lambda *_: kind())
    with built(config) as algorithm, pytest.raises(UserError, match=sentence):
        algorithm.train()


class Noting(RLlibCallback):  # type: ignore[misc]  # Ray has no types
    """Logs what it sees, as RLlib's examples do."""

    def on_algorithm_init(self, *, algorithm: Any, **_: Any) -> None:
        algorithm.seen = [len(algorithm.problems)]

    def on_episode_end(self, *, episode: Any, metrics_logger: Any, env_runner: Any, rl_module: Any, **_: Any) -> None:
        assert set(rl_module.keys()) == {"coder", "tester"}
        assert env_runner.module is rl_module
        rewards = episode.get_rewards()
        assert math.isclose(episode.get_return(), sum(rewards.values()))
        metrics_logger.log_value("best_coder", max(rewards[f"coder_{n}"] for n in range(6)), reduce="max")
        metrics_logger.log_value("ended", 1, reduce="sum")

    def on_sample_end(self, *, samples: Any, metrics_logger: Any, **_: Any) -> None:
        metrics_logger.log_value("replies", sum(each.agent_steps() for each in samples), reduce="sum")

    def on_train_result(self, *, algorithm: Any, result: Any, **_: Any) -> None:
        algorithm.seen.append(result["env_runners"]["episode_return_mean"])


@pytest.mark.parametrize("runners", [0, 2])
def test_callbacks_are_called_when_rewards_are_known(config: GRPOConfig, runners: int) -> None:
    config.env_runners(num_env_runners=runners, num_cpus_per_env_runner=0.5).callbacks(
        Noting, on_episode_end=lambda *, metrics_logger, **_: metrics_logger.log_value("also", 1, reduce="sum")
    )
    with built(config) as algorithm:
        for _ in range(2):
            result = algorithm.train()
            trees = algorithm.last_trees
            found = result["env_runners"]
            assert found["ended"] == found["also"] == len(trees) == found["num_episodes"]
            assert found["best_coder"] == max(tree.coder_rewards.max() for tree in trees)
            assert found["replies"] == sum(tree.agent_steps() for tree in trees)
            returns = [sum(tree.get_rewards().values()) for tree in trees]
            assert found["episode_return_mean"] == pytest.approx(sum(returns) / len(returns))
        assert len(algorithm.seen) == 3


@pytest.mark.parametrize("runners", [0, 1, 2])
def test_evaluations_play_their_own_problems_with_the_present_weights(config, runners, tmp_path):
    """Ray waited for ever for remote runners; and the figures depend neither on them nor on earlier evaluations."""
    config.evaluation(
        evaluation_interval=2,
        evaluation_num_env_runners=runners,
        evaluation_duration=3,
        evaluation_config=GRPOConfig.overrides(problem_source="starter", explore=False),
    )
    with built(config.callbacks(Noting)) as algorithm:
        assert "evaluation" not in algorithm.train()
        found = algorithm.train()["evaluation"]["env_runners"]
        again = algorithm.evaluate()["env_runners"]
        runner = algorithm.eval_env_runner or algorithm.env_runner
        checkpoint = algorithm.save_to_path(tmp_path / "checkpoint")
        algorithm.train()
        algorithm.restore_from_path(checkpoint)
        restored = algorithm.evaluate()["env_runners"]
        own = algorithm.env_runner.module["coder"].get_state()
        learners = weights_of(algorithm)["coder"]
    assert found["num_episodes"] == found["ended"] == 3
    assert {**found} == {**again} == {**restored}
    assert runner.config.in_evaluation == (runners == 0)
    assert all((own[name] == learners[name]).all() for name in own)
    _EVALUATED.append({name: float(value) for name, value in found.items()})
    assert _EVALUATED[0] == _EVALUATED[-1]


_EVALUATED: list[dict[str, float]] = []
"""Results of the test above, with each number of runners."""


def sampled_by_each(algorithm: Any, runners: Any) -> tuple[dict[str, Any], int, int]:
    """As RLlib's example of a custom evaluation."""
    work = lambda runner: (runner.sample(num_episodes=2), runner.get_metrics())  # noqa: E731
    found = runners.foreach_env_runner(work, local_env_runner=runners.num_remote_env_runners() == 0)
    algorithm.metrics.aggregate([metrics for _, metrics in found], key=("evaluation", "env_runners"))
    episodes = [each for episodes, _ in found for each in episodes]
    algorithm.numbers = [each.task.number for each in episodes]
    return {}, sum(each.env_steps() for each in episodes), sum(each.agent_steps() for each in episodes)


@pytest.mark.parametrize("runners", [0, 2])
def test_a_custom_evaluation_function_has_runners_sample(config: GRPOConfig, runners: int) -> None:
    config.evaluation(
        evaluation_interval=1, evaluation_num_env_runners=runners, custom_evaluation_function=sampled_by_each
    )
    with built(config) as algorithm:
        found = algorithm.train()["evaluation"]["env_runners"]
        assert found["num_episodes"] == len(set(algorithm.numbers)) == 2 * max(1, runners)
        assert math.isfinite(found["episode_return_mean"])
        algorithm.env_runner.sample(num_episodes=1)
        algorithm.train()  # what a runner sampled for others is no figure of the training


def figures_of(names: str) -> Callable[[Any, Any], tuple[dict[str, float], int, int]]:
    def evaluated(algorithm: Any, _: Any) -> tuple[dict[str, float], int, int]:
        algorithm.log_evaluation(found := dict.fromkeys(names, 1.0))
        return found, 0, 0

    return evaluated


def test_the_results_of_an_evaluation_are_its_own_figures_in_their_order(config: GRPOConfig, tmp_path: Path) -> None:
    """Those of an earlier one that are missing now are gone, also after a restart."""
    with built(config.evaluation(custom_evaluation_function=figures_of("cba"))) as algorithm:
        assert list(algorithm.evaluate()["env_runners"]) == ["c", "b", "a"]
        checkpoint = algorithm.save_to_path(tmp_path / "checkpoint")
    with built(config.evaluation(custom_evaluation_function=figures_of("da"))) as algorithm:
        algorithm.restore_from_path(checkpoint)
        assert list(algorithm.evaluate()["env_runners"].items()) == [("d", 1.0), ("a", 1.0)]


def test_a_lost_runner_of_evaluations_starts_again_with_the_weights(config: GRPOConfig) -> None:
    config.evaluation(evaluation_interval=1, evaluation_num_env_runners=2, evaluation_duration=2)
    config.fault_tolerance(restart_failed_env_runners=True)
    with built(config) as algorithm:
        algorithm.train()
        before = algorithm.evaluate()["env_runners"]["episode_return_mean"]
        group = algorithm.eval_env_runner_group
        (pid, *_) = group.foreach_env_runner(lambda _: os.getpid(), local_env_runner=False)
        os.kill(pid, signal.SIGKILL)
        assert algorithm.evaluate()["env_runners"]["episode_return_mean"] == before
        assert algorithm.train()["evaluation"]["env_runners"]["num_episodes"] == 2


def test_without_settings_an_evaluation_plays_the_problems_of_the_training(config: GRPOConfig) -> None:
    with built(config.evaluation(evaluation_duration=2)) as algorithm:
        found = algorithm.evaluate()["env_runners"]
    assert found["num_episodes"] == 2
    assert found["coder_reward"] >= 0


@pytest.mark.parametrize("runners", [0, 1])
def test_a_module_writes_replies(config: GRPOConfig, runners: int) -> None:
    config.env_runners(num_env_runners=runners, create_local_env_runner=not runners)
    with built(config.training(lr=0.05)) as algorithm:
        algorithm.train()
        module = algorithm.get_module("coder")
        reply = module.generate("Write f.", max_tokens=2)
        own, learners = module.get_state(), weights_of(algorithm)["coder"]
        prompts = [module.chat.prompt_ids([]) or [3], [3, 4]]
        found = module.forward_inference({"obs": prompts}, max_tokens=2)
        drawn = [module.forward_exploration({"obs": prompts}, seed=seed, max_tokens=2)["actions"] for seed in (0, 0, 1)]
    assert reply
    assert all((own[name] == learners[name]).all() for name in own)
    assert [len(row) for row in found["actions"]] == [len(row) for row in found["action_logp"]]
    assert all(value <= 0 for row in found["action_logp"] for value in row)
    assert drawn[0] == drawn[1]


HONOURED: dict[str, Callable[..., None]] = {
    "multi_agent(policies_to_train)": test_only_policies_to_train_learn,
    "rl_module(rl_module_spec)": test_a_class_derived_from_the_module_s_trains_and_samples,
    "learners(learner_class)": test_a_learner_adds_a_term_to_the_loss,
    "learners(learner_connector)": test_learner_connectors_run_before_ours,
    "callbacks(on_episode_end, on_sample_end, on_train_result)": test_callbacks_are_called_when_rewards_are_known,
    "evaluation(evaluation_interval, evaluation_num_env_runners, evaluation_duration, evaluation_config)": (
        test_evaluations_play_their_own_problems_with_the_present_weights
    ),
    "evaluation(custom_evaluation_function)": test_a_custom_evaluation_function_has_runners_sample,
}
"""By the name on the page."""

# -- refused ---------------------------------------------------------------------------------------

VALUES = {
    "train_batch_size": 7,
    "train_batch_size_per_learner": 7,
    "minibatch_size": 3,
    "num_epochs": 5,
    "gamma": 0.5,
    "grad_clip_by": "value",
    "num_gpus": 1,
    "_fake_gpus": True,
    "torch_skip_nan_gradients": True,
    "log_gradients": True,
    "fake_sampler": True,
    "_torch_lr_scheduler_classes": [len],
    "num_envs_per_env_runner": 4,
    "rollout_fragment_length": 7,
    "batch_mode": "truncate_episodes",
    "sample_timeout_s": 3.0,
    "compress_observations": True,
    "episodes_to_numpy": False,
    "observation_filter": "MeanStdFilter",
    "gym_env_vectorize_mode": "ASYNC",
    "episode_lookback_horizon": 3,
    "explore": False,
    "count_steps_by": "agent_steps",
    "model_config": {"fcnet_hiddens": [8]},
    "evaluation_duration_unit": "timesteps",
    "evaluation_parallel_to_training": True,
    "evaluation_sample_timeout_s": 3.0,
}
"""Of settings that take no function."""


@pytest.mark.parametrize(("refusal", "name"), [(each, name) for each in REFUSED for name in each.settings.split()])
def test_a_setting_that_nothing_reads_is_refused_where_it_is_set(refusal: Any, name: str) -> None:
    sentence = f"^{refusal.method}: {name} would change nothing here: {re.escape(refusal.why)}$"
    value = VALUES.get(name, lambda *_, **__: None)
    config = GRPOConfig()
    with pytest.raises(UserError, match=sentence):
        getattr(config, refusal.method)(**{name: value})


class Starting(RLlibCallback):  # type: ignore[misc]  # Ray has no types
    def on_episode_start(self, **_: Any) -> None:
        pass


def learner_with(name: str) -> type[Any]:
    return type("Own", (GRPOTorchLearner,), {name: lambda *_, **__: None})


@pytest.mark.parametrize(
    ("sets", "sentence"),
    [
        (lambda c: c.callbacks(Starting), "callbacks: Starting.on_episode_start would change nothing"),
        (lambda c: c.rl_module(rl_module_spec=RLModuleSpec(module_class=TorchRLModule)), "from CausalLMModule"),
        (lambda c: c.rl_module(rl_module_spec=RLModuleSpec(model_config={"a": 1})), "rl_module: model_config"),
        (lambda c: c.learners(learner_class=ConnectorV2), "derive it from GRPOTorchLearner"),
        *(
            (lambda c, name=name: c.training(learner_class=learner_with(name)), f"learners: Own.{name} would change")
            for name in _NOT_USED_BY_LEARNER
        ),
        (lambda c: c.multi_agent(policies={"a", "b"}), "llm_agents sets the modules"),
        (lambda c: c.multi_agent(policies={"coder": (None, None, None, {"lr": 1})}), "llm_agents sets the modules"),
        (lambda c: c.multi_agent(policies_to_train=lambda *_: True), "list the modules"),
        (lambda c: c.env_runners(env_runner_cls=object), "derive it from TreeEnvRunner"),
        (lambda c: c.evaluation(evaluation_config={"seed": 3}), "it needs runners"),
        (lambda c: c.update_from_dict({"_module_to_env_connector": len}).validate(), "module_to_env_connector"),
        (
            lambda c: c.multi_agent(policies_to_train=["critic"]).validate(),
            "policies_to_train must be among the modules coder, tester, got 'critic'",
        ),
        (
            lambda c: c.rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs={"critic": OWN})).validate(),
            "rl_module_spec must be among the modules coder, tester, got 'critic'",
        ),
        (
            lambda c: c.evaluation(
                evaluation_interval=1, evaluation_config={"problem_source": "humanevall"}
            ).validate(),
            "humanevall",
        ),
    ],
)
def test_classes_that_nothing_calls_are_refused(config: GRPOConfig, sets: Callable[[Any], Any], sentence: str) -> None:
    with pytest.raises(UserError, match=re.escape(sentence)):
        sets(config)


# -- every setting, by every door ------------------------------------------------------------------


def another(value: Any) -> Any:
    """A value that is not the default, of its type where that is a number, a text or a collection."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, dict):
        return {**value, "another": 1}
    return [*value, "another"] if isinstance(value, list) else 3


BY_DICTIONARY: list[Callable[[Any, str, Any], Any]] = [
    lambda config, name, value: config.update_from_dict({name: value}),
    setattr,
    lambda config, name, value: config.__setitem__(name, value),
    lambda config, name, value: config.overrides(**{name: value}),
    lambda config, name, value: GRPOConfig.from_dict({name: value}),
    lambda config, name, value: config.copy().update_from_dict({name: value}),
    lambda config, name, value: config.update_from_dict({name: tune.grid_search([value])}),
]


def said_of(door: Callable[[], Any]) -> str:
    """What refuses a setting, empty if nothing does."""
    try:
        door()
    except UserError as error:
        return str(error)
    return ""


OVERRIDDEN = {
    "lr": 1e-2,
    "warmup_steps": 7,
    "epochs_per_step": 2,
    "clip_low": 1e-6,
    "clip_high": 1e-6,
    "dual_clip": 1.001,
    "kl_coeff": 5.0,
    "entropy_coeff": 5.0,
    "weight_decay": 9.0,
    "grad_clip": 1e-4,
    "old_log_probs": "learner",
    "tis_cap": 1e-3,
    "total_steps": 2,
}
"""Values with which a learner updates otherwise."""
OF_GAME = {
    "problem_source": "humaneval",
    "rules": preset("paper"),
    "tester_view": "black_box",
    "sandbox": "remote",
    "limits": Limits(cpu_s=9.0),
    "scripted": {"tester": "oracle"},
    "prompts": "simple",
    "models": {"coder": ModelSettings("elsewhere")},
    "suites_per": SuitesPer.PROBLEM,
    "advantages": "decoupled",
    "credit": "test",
    "other_text": "mean",
    "max_tokens": {"coder": 9},
    "max_prompt_tokens": {"coder": 9},
    "policy_mapping_fn": ByRole({"tester": "coder"}),
    "policies_to_train": [],
    "algorithm_config_overrides_per_module": {"critic": {"lr": 0.1}},
    "num_cpus_per_learner": 3,
    "placement_strategy": "SPREAD",
    **{name: {"odd": 1} for name in vars(GRPOConfig()) if name.startswith("custom_resources_")},
}
"""Values of settings that have no neighbour of their type."""


def trace(config: Any) -> tuple[str, ...]:
    """What runners get, and what Ray Tune reserves."""
    bundles = GRPO.default_resource_request(dict(config.to_dict()))
    return repr(config.settings()), repr((bundles.bundles, bundles.strategy))


def updated(folder: str, **settings: Any) -> Any:
    """The weights after two updates from log-probabilities that the learner does not have."""
    one = learner_of(folder, **settings)
    responses = [scored("coder", 3, 9, advantage=-1.2), scored("coder", 7, 4, advantage=0.8)]
    for _ in range(2):
        one.update(episodes=planned(responses, 1, (0,)))
    return {"coder": one.module["coder"].get_state()}


def test_every_setting_changes_a_run_or_is_refused_or_is_on_the_page(phrase_folders: dict[str, str]) -> None:
    """By every door; what neither is refused nor leaves a trace is in the page's table, with the reason."""
    config = GRPOConfig().problems("starter").llm_agents(coder="a").agents(tester="fuzz")
    config.evaluation(evaluation_interval=1, evaluation_num_env_runners=1)
    plain, silent = trace(config), set()
    for name, value in dict(vars(config)).items():
        other = OF_GAME.get(name, OVERRIDDEN.get(name, another(value)))
        said = said_of(lambda name=name, other=other: setattr(config.copy(), name, other))
        if said:
            assert "\n" not in said
            assert name.removeprefix("callbacks_").removeprefix("_").removesuffix("_str") in said
            for door in BY_DICTIONARY:
                drawn_later = (
                    door is BY_DICTIONARY[-1] and name in _CHECKS
                )  # a space is checked when its value is known
                found = said_of(lambda name=name, other=other, door=door: door(config.copy(), name, other))
                assert found == ("" if drawn_later else said), name
        elif name not in OVERRIDDEN:
            changed = config.copy()
            changed.__dict__[name] = other
            with suppress(UserError, ValueError, TypeError, AttributeError):  # where it is read
                silent |= {name} if trace(changed) == plain else set()
    folder = phrase_folders["coder"]
    own = {"old_log_probs": "learner"}
    usual = {"tis_cap": own, "clip_high": {**own, "epochs_per_step": 2}}
    for name, value in OVERRIDDEN.items():
        base = updated(folder, **usual.get(name, {}))
        assert distance(base, updated(folder, **usual.get(name, {}), **{name: value})) > 0, name
    by_tests = {name for label in HONOURED for name in re.findall(r"[a-z_]+", label.partition("(")[2])}
    by_tests = {attribute_of(name) for name in by_tests} | {"callbacks_class", *("env_config", "minibatches_per_epoch")}
    # `test_group_envs.py` is about env_config, `test_batch.py` about minibatches.
    table = PAGE.read_text().split("| not seen in figures | why |")[1].split("\n\n")[0]
    listed = {attribute_of(name) for name in re.findall(r"`(\w+)`", "".join(re.findall(r"(?m)^\| ([^|]*) \|", table)))}
    assert (silent | {"in_evaluation"}) - by_tests == listed


@pytest.mark.parametrize("method", sorted({each.method for each in REFUSED}))
def test_every_parameter_of_a_method_sets_its_attribute_or_is_refused(method: str) -> None:
    """Also those that Ray has deprecated, which set the one of the new name or are refused by Ray."""
    for name in {*signature(getattr(AlgorithmConfig, method)).parameters} - {"self", "kwargs"}:
        attribute, config = attribute_of(name), GRPOConfig().problems("starter").llm_agents(coder="a")
        before = copy.deepcopy({key: value for key, value in vars(config).items() if key != "_rl_module_spec"})
        other = OF_GAME.get(attribute, another(before.get(attribute)))
        try:
            said = said_of(lambda config=config, name=name, other=other: getattr(config, method)(**{name: other}))
        except (ValueError, TypeError, AttributeError) as error:  # by Ray
            said = str(error)
        assert said or any(vars(config)[key] != value for key, value in before.items()), name
        if attribute in before and said_of(lambda: setattr(GRPOConfig(), attribute, other)):  # noqa: B023
            assert said, name


def test_a_setting_is_refused_where_a_configuration_is_restored_and_built(config: GRPOConfig) -> None:
    """What went around every door is met before anything runs."""
    mistaken = config.copy()
    mistaken.__dict__["gamma"] = 0.5
    doors = [
        mistaken.validate,
        mistaken.build_algo,
        lambda: GRPO(mistaken),
        lambda: GRPOConfig.from_state(mistaken.get_state()).validate(),
        lambda: pickle.loads(pickle.dumps(mistaken)).build_algo(),
        lambda: mistaken.copy().validate(),
        lambda: GRPO(config={**config.to_dict(), "gamma": 0.5}),
    ]
    assert [said_of(door).partition(" would")[0] for door in doors] == ["training: gamma"] * len(doors)


@pytest.mark.parametrize(
    "sets",
    [
        lambda name: {"algorithm_config_overrides_per_module": {"coder": {name: 1}}},
        lambda name: {"evaluation_config": {name: 1}, "evaluation_interval": 1},
    ],
)
def test_of_one_module_and_of_evaluations_only_what_is_read_there_is_set(sets: Callable[[str], Any]) -> None:
    allowed = PER_MODULE if "evaluation_config" not in sets("lr") else OF_EVALUATIONS
    for name in vars(GRPOConfig()):
        refused = said_of(lambda name=name: GRPOConfig().update_from_dict(sets(name)))
        assert bool(refused) == (name not in allowed), (name, refused)


def test_a_module_of_its_own_settings_has_what_they_need(config: GRPOConfig) -> None:
    config.training(kl_coeff=0.0).rl_module(
        algorithm_config_overrides_per_module={"tester": GRPOConfig.overrides(kl_coeff=0.1, entropy_coeff=0.1)}
    )
    specs = specs_of(config).rl_module_specs
    assert [specs[name].model_config["with_reference"] for name in ("coder", "tester")] == [False, True]
    assert [specs[name].model_config["entropy_bonus"] for name in ("coder", "tester")] == [False, True]
    with pytest.raises(UserError, match="lr should be a valid number"):
        config.rl_module(algorithm_config_overrides_per_module={"tester": {"lr": "fast"}}).validate()


@pytest.mark.parametrize(
    ("name", "here"),
    [
        *(("clip_param", "clip_low"), ("learning_rate", "lr="), ("num_sgd_iter", "epochs_per_step")),
        *(("lambda", "one reward"), ("top_p", "whole distribution"), ("num_epoch", "did you mean 'num_epochs'")),
    ],
)
def test_names_of_other_algorithms_are_answered_with_those_here(name: str, here: str) -> None:
    config = GRPOConfig()
    for door in (lambda: config.update_from_dict({name: 0.5}), lambda: GRPOConfig.overrides(**{name: 0.5})):
        assert here in said_of(door)
    if name not in ("num_epoch", "lambda"):
        assert here in said_of(lambda: config.training(**{name: 0.5}))
    mistaken = GRPOConfig().problems("starter").llm_agents(coder="a").agents(tester="fuzz")
    assert here in said_of(lambda: (setattr(mistaken, name, 0.5), mistaken.validate()))


def test_weights_of_some_modules_are_loaded_and_modules_stay(config: GRPOConfig) -> None:
    with built(config) as algorithm:
        before = algorithm.get_weights()
        result = algorithm.train()
        assert set(result["learners"]) >= {"coder", "tester"}
        after = weights_of(algorithm)
        algorithm.set_weights({"coder": before["coder"]})
        now = weights_of(algorithm)
        assert distance({"coder": before["coder"]}, {"coder": now["coder"]}) == 0
        assert distance({"tester": after["tester"]}, {"tester": now["tester"]}) == 0
        own = algorithm.env_runner.module["coder"].get_state()
        assert all((own[name] == before["coder"][name]).all() for name in own)
        for call in (lambda: algorithm.remove_module("tester"), lambda: algorithm.set_weights({"critic": {}})):
            assert re.match("(remove_module|set_weights): modules", said_of(call))
        algorithm.train()


class Paying(GroupEnv):
    paid: Any = math.inf

    def step(self, actions: Any) -> Any:
        observations, rewards, *rest = super().step(actions)
        return observations, dict.fromkeys(rewards, self.paid), *rest


class PayingNothing(Paying):
    paid = None


@pytest.mark.parametrize(("env", "paid"), [(Paying, "inf"), (PayingNothing, "None")])
def test_a_reward_that_is_not_finite_is_refused_by_name(config: GRPOConfig, env: type[Any], paid: str) -> None:
    with built(config.environment(env=env)) as algorithm, pytest.raises(UserError) as refused:
        algorithm.train()
    said = r"environment: the reward of coder_0 on problem .* must be a finite number, .* got "
    assert re.match(said + paid, str(refused.value))


def test_an_iteration_without_a_trained_reply_has_results_of_learners(config: GRPOConfig) -> None:
    config.environment(env=PayingAllTheSame)
    with built(config) as algorithm:
        result = algorithm.train()
    assert result["responses_trained"] == 0
    assert set(result["learners"]) >= {"coder", "tester"}


class PayingAllTheSame(Paying):
    paid = 1.0


def test_relative_paths_hold_under_tune(
    config: GRPOConfig, phrase_folders: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tune goes to the folder of the trial."""
    storage = SimpleNamespace(trial_working_directory=str(tmp_path))
    monkeypatch.setenv("TUNE_ORIG_WORKING_DIR", os.getcwd())  # Tune sets it, and this process goes on
    here, algorithm = os.getcwd(), GRPO.__new__(GRPO)
    algorithm._storage = storage
    algorithm._setup_logdir()
    assert (os.getcwd(), algorithm._logdir) == (here, str(tmp_path))


def test_the_page_lists_what_is_honoured_and_what_is_refused() -> None:
    honoured, refused = PAGE.read_text().split("**Honoured** are")[1].split("**Refused**")
    assert set(re.findall(r"`(\w+\([^`]*\))`", " ".join(refused.partition("\n\n")[0].split()))) == set(
        map(str, REFUSED)
    )
    assert set(re.findall(r"(?m)^- `(\w+\([^`]*\))`: ", honoured)) == set(HONOURED)
