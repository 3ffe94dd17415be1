"""A tester learns golden tests, and the same settings teach the same."""

from __future__ import annotations

import json
import sys
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codea1_agents.train.tiny.sft_examples import sft_examples
from codea1_agents.train.tiny.supervised import SupervisedSettings, fine_tuned, sft_tester
from codea1_env.errors import UserError
from tests.support.sft_examples import ADD, FAILING, PROMPTS, WRONG

QUICK = SupervisedSettings(epochs=4, lessons_per_step=2, lr=1e-2)


def weights(found: Any) -> dict[str, Any]:
    return {name: tensor.clone() for name, tensor in found.model.state_dict().items()}


def test_a_model_learns_the_replies_and_the_same_settings_give_the_same_weights(model_folder: str) -> None:
    import torch

    examples = sft_examples(FAILING, PROMPTS, tests=2)
    before = torch.get_rng_state()
    found = fine_tuned(model_folder, examples, QUICK)
    assert torch.equal(before, torch.get_rng_state())
    assert found.losses[-1] < 0.7 * found.losses[0]
    assert found.n_steps == 4 * 3
    assert found.n_tokens == sum(len(example.reply) + 1 for example in examples)  # a byte each, and the end
    again = fine_tuned(model_folder, examples, QUICK)
    assert all(torch.equal(a, b) for a, b in zip(weights(found).values(), weights(again).values(), strict=True))
    other = fine_tuned(model_folder, examples, replace(QUICK, seed=1))
    assert not all(torch.equal(a, b) for a, b in zip(weights(found).values(), weights(other).values(), strict=True))


def test_nothing_but_the_reply_is_learnt(model_folder: str) -> None:
    import torch

    (example,) = sft_examples(FAILING[:1], PROMPTS, tests=1)
    one = fine_tuned(model_folder, [example], replace(QUICK, epochs=1, lr=1e-30))
    logits_of = one.model
    prompt = one.tokenizer("User: x")["input_ids"]
    assert len(prompt) == len("User: x")
    from codea1_agents.models.chat_format import ChatFormat

    asked = ChatFormat(one.tokenizer, "it").prompt_ids(example.messages)
    reply = [*one.tokenizer(example.reply)["input_ids"], 256]
    with torch.no_grad():
        logits = logits_of(torch.tensor([asked + reply])).logits[0].log_softmax(-1)
    told = [-float(logits[len(asked) - 1 + at, token]) for at, token in enumerate(reply)]
    assert one.losses[0] == pytest.approx(sum(told) / len(told), rel=1e-4)


def test_a_model_that_was_saved_can_be_taught_again(model_folder: str, tmp_path: Path) -> None:
    examples = sft_examples(FAILING, PROMPTS, tests=2)
    first = fine_tuned(model_folder, examples, QUICK)
    first.save(tmp_path / "new")
    second = fine_tuned(str(tmp_path / "new"), examples, QUICK)
    assert second.losses[0] < first.losses[0]


def test_a_model_can_teach_itself_from_its_own_failures(model_folder: str, tmp_path: Path) -> None:
    problems = tmp_path / "problems.jsonl"
    row = {"id": "toy", "statement": "Return a + b.", "entry_point": "add", "solution": ADD.solution}
    problems.write_text(json.dumps(row | {"golden": ["assert add(1, 2) == 3"]}) + "\n")
    coder = f"{__name__}_coder:wrong"
    settings = SupervisedSettings(coder=coder, samples=2, tests=1, epochs=1)
    sys.modules[f"{__name__}_coder"] = types.SimpleNamespace(wrong=lambda observation: WRONG[0])  # type: ignore[assignment]
    done = sft_tester(model_folder, str(problems), tmp_path / "new", settings)
    assert (done.n_failing, done.n_lessons, done.n_problems) == (1, 1, 1)
    assert (tmp_path / "new" / "model.safetensors").is_file()


def test_without_examples_there_is_nothing_to_learn(model_folder: str) -> None:
    with pytest.raises(UserError, match="nothing to fine-tune on"):
        fine_tuned(model_folder, [], QUICK)


@pytest.mark.parametrize("wrong", [{"epochs": 0}, {"lr": 0.0}, {"lr": float("nan")}, {"grad_clip": 0.0}, {"seed": -1}])
def test_settings_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="fine-tuning"):
        SupervisedSettings(**wrong)


def test_the_command_teaches_a_model_from_a_coders_failures(
    model_folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from codea1_agents.cli.app import app
    from codea1_env.sandbox.local import LocalSandbox

    monkeypatch.setattr(LocalSandbox, "close", lambda self: None)  # later tests of this process need it

    def run(*options: str) -> Any:
        return CliRunner().invoke(app, ["sft-tester", model_folder, "-p", "starter", "--limit", "3", *options])

    options = ("--samples", "4", "--tests", "2", "--epochs", "1", "--json")
    done = run("-o", str(tmp_path / "sft"), "--coder", "mutant,strength=1.0", *options)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["n_lessons"] >= 3
    assert found["n_problems"] <= 3
    assert (tmp_path / "sft" / "model.safetensors").is_file()
    again = run("-o", str(tmp_path / "sft"), *options)
    assert again.exit_code == 2
    assert "must be new or empty" in again.output
    without = run("-o", str(tmp_path / "none"), "--coder", "reference", *options)
    assert without.exit_code == 2
    assert "nothing to fine-tune on" in without.output
