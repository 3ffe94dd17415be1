"""The presets of the paper's runs against its table of hyperparameters, written down independently."""

from __future__ import annotations

import pytest

pytest.importorskip("ray", reason="Ray is not installed")

from codea1_agents.train.grpo.settings import engine_share
from codea1_agents.train.loop import load_training
from codea1_agents.train.loop.building import grpo_config

pytestmark = pytest.mark.filterwarnings("default")  # Ray's own

EPOCHS, TRAINING_PROBLEMS = 3, 9688


@pytest.mark.parametrize("size", ["1.5B", "3B", "7B"])
def test_what_a_run_does_is_what_the_paper_says(size: str) -> None:
    config = load_training(f"paper-{size.lower()}", ["game.problems=starter"])
    made = grpo_config(config)
    assert made.problems_per_step == 256
    assert (made.n_candidates, made.n_suites, made.n_kept, made.suites_per) == (8, 8, 1, "candidate")
    assert made.settings().rollout.keep_zero_std_groups  # the official code drops no group
    assert made.temperature == 1.0
    assert 256 // made.minibatches_per_epoch == 128
    assert made.epochs_per_step == 1
    assert (made.lr, made.warmup_steps, made.total_steps) == (1e-6, 10, 111)
    assert TRAINING_PROBLEMS // 256 * EPOCHS == config.run.steps == 111
    assert (made.clip_low, made.clip_high, made.dual_clip) == (0.2, 0.28, 10.0)
    assert (made.kl_coeff, made.entropy_coeff) == (0.001, 0.0)
    assert (made.grad_clip, made.weight_decay) == (1.0, 0.1)
    assert made.max_prompt_tokens == {"coder": 4096, "tester": 8192}
    assert made.max_tokens == {"coder": 4096, "tester": 4096}
    assert {role: each.path for role, each in made.models.items()} == dict.fromkeys(
        ("coder", "tester"), f"Qwen/Qwen2.5-Coder-{size}-Instruct"
    )
    assert {(each.autocast, each.sampling_dtype) for each in made.models.values()} == {("bfloat16", "bfloat16")}
    assert {each.rollout_engine for each in made.models.values()} == {"vllm"}
    assert len(made.models) * engine_share(made.num_gpus_per_env_runner, len(made.models)) == pytest.approx(0.9)
    assert made.trained_modules == set(made.models)
    assert made.tester_view == "white_box"
    assert made.rules.name == "release"
    assert (made.rules.tests_per_suite, made.rules.reward.alpha, made.rules.book.n_replayed) == (8, 0.5, 8)
    assert made.old_log_probs == "learner"  # verl computes them anew before the first update
    assert (config.checkpoints.every, config.checkpoints.keep) == (50, 2)
    evaluation = config.evaluation
    assert (evaluation.every, evaluation.at_start, evaluation.samples) == (10, True, 32)
    assert (evaluation.temperature, evaluation.top_p) == (0.7, 0.95)


def test_the_larger_ones_differ_in_their_models_and_memory_only() -> None:
    small = load_training("paper-1.5b").model_dump()
    for size in ("3b", "7b"):
        other = load_training(f"paper-{size}").model_dump()
        for config in (small, other):
            for role in ("coder", "tester"):
                config["agents"][role]["model"] = ""
            config["about"] = ""
            config["cluster"] = {}
            config["training"]["micro_batch_size"] = 0
        assert other == small
