"""The presets of the paper's runs against its table of hyperparameters, written down independently."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="Ray is not installed")

from codea1_agents.train.grpo.settings import engine_share
from codea1_agents.train.loop import load_training
from codea1_agents.train.loop.building import grpo_config
from tests.support import ROOT

pytestmark = pytest.mark.filterwarnings("default")  # Ray's own

METHOD = ROOT.parent / "shared" / "design" / "method.md"
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


def table_of_the_release(page: Path) -> dict[str, str]:
    """Items and values of the table of hyperparameters in notes about the release, two pairs in a row."""
    rows = re.findall(r"^\| (.+?) \| (.+?) \| \| (.+?) \| (.+?) \|$", page.read_text(), re.MULTILINE)
    return {item: value for row in rows for item, value in (row[:2], row[2:])}


def numbers(text: str) -> list[float]:
    return [float(each.replace(",", "")) for each in re.findall(r"-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?", text)]


@pytest.mark.skipif(not METHOD.is_file(), reason="the notes about the release (shared/design/method.md) are not here")
@pytest.mark.parametrize("size", ["1.5b", "3b", "7b"])
def test_a_run_has_the_values_of_the_release(size: str) -> None:
    table = table_of_the_release(METHOD)
    config = load_training(f"paper-{size}", ["game.problems=starter"])
    made = grpo_config(config)
    assert numbers(table["train_batch_size"]) == [made.problems_per_step]
    assert numbers(table["rollout n"]) == [made.n_candidates, made.n_suites]
    assert numbers(table["temp/top_p/top_k"]) == [made.temperature, 1, -1]  # the last two have no setting
    assert numbers(table["ppo_mini_batch"])[0] * made.minibatches_per_epoch == made.problems_per_step
    assert numbers(table["ppo_epochs"]) == [made.epochs_per_step]
    assert numbers(table["lr"]) == [made.lr, 0, made.warmup_steps]
    assert numbers(table["max prompt / response"]) == [*made.max_prompt_tokens.values(), made.max_tokens["coder"]]
    assert numbers(table["epochs / steps"]) == [EPOCHS, config.run.steps]
    assert numbers(table["clip low/high"]) == [made.clip_low, made.clip_high]
    assert numbers(table["dual clip c"]) == [made.dual_clip]
    assert numbers(table["entropy coeff"]) == [made.entropy_coeff]
    assert numbers(table["KL"])[-1:] == [made.kl_coeff]
    assert numbers(table["grad_clip"]) == [made.grad_clip]
    assert numbers(table["weight decay"]) == [made.weight_decay]
    assert table["loss_agg"] == "token-mean"  # the only one that there is
    # Its vLLM samples in bfloat16, and verl computes the log-probabilities of the ratio anew.
    assert table["dtype"].startswith("bf16")
    assert {each.sampling_dtype for each in made.models.values()} == {"bfloat16"}
    assert (made.old_log_probs, made.tis_cap) == ("learner", 0.0)


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
