"""RLlib's settings, in RLlib's idiom: each has an effect or is refused with one sentence, as docs/training.md says."""

from __future__ import annotations

import math
import os
import re
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codea1_env.errors import UserError
from tests.support.grpo import ON_RAY, built, distance, weights_of

pytest.importorskip("ray", reason="Ray is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")
from ray.rllib.callbacks.callbacks import RLlibCallback  # noqa: E402
from ray.rllib.connectors.connector_v2 import ConnectorV2  # noqa: E402
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec  # noqa: E402
from ray.rllib.core.rl_module.rl_module import RLModuleSpec  # noqa: E402
from ray.rllib.core.rl_module.torch import TorchRLModule  # noqa: E402

from codea1_agents.train.grpo import GRPOConfig  # noqa: E402
from codea1_agents.train.grpo.learner import GRPOTorchLearner  # noqa: E402
from codea1_agents.train.grpo.rl_module import CausalLMModule  # noqa: E402
from codea1_agents.train.grpo.rllib_settings import _NOT_USED_BY_LEARNER, REFUSED  # noqa: E402

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
    "num_envs_per_env_runner": 4,
    "rollout_fragment_length": 7,
    "batch_mode": "truncate_episodes",
    "sample_timeout_s": 3.0,
    "compress_observations": True,
    "episodes_to_numpy": False,
    "observation_filter": "MeanStdFilter",
    "gym_env_vectorize_mode": "ASYNC",
    "episode_lookback_horizon": 3,
    "restart_failed_sub_environments": True,
    "torch_compile_learner": True,
    "torch_compile_worker": True,
    "input_": "rows",
    "output": "rows",
    "explore": False,
    "count_steps_by": "agent_steps",
    "model_config": {"fcnet_hiddens": [8]},
    "evaluation_duration_unit": "timesteps",
    "evaluation_parallel_to_training": True,
    "evaluation_sample_timeout_s": 3.0,
    "metrics_num_episodes_for_smoothing": 3,
}
"""Of settings that take no function."""


@pytest.mark.parametrize(("refusal", "name"), [(each, name) for each in REFUSED for name in each.settings])
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


def test_the_page_lists_what_is_honoured_and_what_is_refused() -> None:
    honoured, refused = PAGE.read_text().split("**Honoured** are")[1].split("**Refused**")
    assert set(re.findall(r"`(\w+\([^`]*\))`", refused.partition("\n\n")[0])) == set(map(str, REFUSED))
    assert set(re.findall(r"(?m)^- `(\w+\([^`]*\))`: ", honoured)) == set(HONOURED)
