"""The whole path of one's own model: checked, fine-tuned, trained and measured by the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from codea1_env.problems import dump_jsonl
from codea1_env.problems.problem import GoldenCase, Problem
from tests.support.command_line import document
from tests.support.grpo import ON_RAY
from tests.support.language_models import CHAT_TEMPLATE, chat_folder

pytest.importorskip("ray", reason="Ray is not installed")
pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

pytestmark = ON_RAY

TINY = ("--prompts", "tiny")
SMALL = {
    "agents.coder.max_tokens": 24,
    "agents.tester.max_tokens": 24,
    "agents.coder.max_prompt_tokens": 128,
    "agents.tester.max_prompt_tokens": 128,
    "rollout.problems_per_step": 3,
    "training.lr": 1e-3,
    "training.warmup_steps": 0,
    "evaluation.every": 100,
    "logging.tensorboard": "false",
    "logging.samples_every": 0,
}


def write_problems(path: Path, n: int) -> None:
    """Write problems that are alike but for their ids."""
    about = ("Return x plus one.", "f", "def f(x):\n    return x + 1\n", (GoldenCase("f(1)", "2"),))
    dump_jsonl([Problem(f"{path.stem}/{number}", *about) for number in range(n)], path)


def test_a_random_model_writes_right_programs_in_the_end(folder: Path) -> None:
    write_problems(folder / "mine.jsonl", 8)
    write_problems(folder / "others.jsonl", 4)
    chat_folder(folder / "mine", CHAT_TEMPLATE, "Llama")
    checked = document("check", "model", "mine", "-p", "mine.jsonl", *TINY, "--max-tokens", 24, "--tests", 1)
    assert checked["figures"]["pass@1"]["mean"] == 0
    assert any("codea1 sft mine" in sentence for sentence in checked["advice"])

    learning = ("--epochs", 4, "--examples-per-step", 8, "--lr", 1e-2, "--samples", 8, "--tests", 1)
    given = ("-p", "mine.jsonl", "--held-out", "others.jsonl")
    tuned = document("sft", "mine", *given, "-o", "warm", *TINY, *learning, "--max-reply-tokens", 24)
    before, after = (tuned["held_out"][moment] for moment in ("before", "after"))
    for name in ("pass@1", "validity"):
        assert before[name]["mean"] == 0 < after[name]["low"], name

    sets = [word for name, value in SMALL.items() for word in ("--set", f"{name}={value}")]
    models = ("--coder", "warm", "--tester", "warm")
    trained = document("train", "code-a1", *models, *given, "--steps", 8, "-o", "run", *sets)
    assert trained["evaluation"]["coder_pass_at_1"] > 0.8

    agent = "transformers,model=run/models/coder,prompts=tiny,max_tokens=24"
    measured = document("eval", "coder", "-p", "others.jsonl", "--agent", agent, "--samples", 8)
    assert measured["figures"]["pass@1"]["mean"] > 0.8
