"""A model learns replies, and nothing else; the same settings give the same weights."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("transformers", reason="transformers is not installed")

import torch
from torch.nn.functional import cross_entropy

from codea1_agents.models.chat_format import ChatFormat, load_tokenizer
from codea1_agents.prompts import load_prompts
from codea1_agents.train.grpo.causal_models import load_causal_model
from codea1_agents.train.grpo.settings import LoraSettings
from codea1_agents.train.sft.examples import examples_for_coder, examples_for_tester
from codea1_agents.train.sft.fine_tuning import FineTuned, SftSettings, fine_tuned
from codea1_agents.train.sft.supervised import LossNotFinite, supervised_steps
from codea1_env.errors import UserError
from tests.support.grpo import distance
from tests.support.language_models import CHAT_TEMPLATE, chat_folder
from tests.support.sft_examples import ADD, FAILING, PROMPTS

QUICK = SftSettings(epochs=4, examples_per_step=2, lr=1e-2)
EXAMPLES = examples_for_tester([ADD], FAILING, PROMPTS, tests=2)


def largest_difference(one: FineTuned, other: FineTuned) -> float:
    return distance({"": one.model.state_dict()}, {"": other.model.state_dict()})


def test_a_model_learns_the_replies_and_the_same_settings_give_the_same_weights(model_folder: str) -> None:
    before = torch.get_rng_state()
    found = fine_tuned(model_folder, EXAMPLES, QUICK)
    assert torch.equal(before, torch.get_rng_state())
    assert found.losses[-1] < 0.7 * found.losses[0]
    assert (found.n_steps, found.n_planned, found.is_interrupted) == (12, 12, False)
    assert found.n_tokens == sum(len(example.reply) + 1 for example in EXAMPLES)  # a byte each, and the end
    assert largest_difference(found, fine_tuned(model_folder, EXAMPLES, QUICK)) == 0
    assert largest_difference(found, fine_tuned(model_folder, EXAMPLES, replace(QUICK, seed=1))) > 0


@pytest.mark.parametrize("kind", ["Llama", "Qwen2"])
def test_the_loss_counts_the_reply_only_up_to_the_end_of_the_turn(kind: str, tmp_path: Path) -> None:
    place = str(chat_folder(tmp_path / kind, CHAT_TEMPLATE, kind))
    (example,) = examples_for_coder([ADD], PROMPTS)
    one = fine_tuned(place, [example], replace(QUICK, epochs=1, lr=1e-30))
    tokenizer = load_tokenizer(place)
    prompt = ChatFormat(tokenizer, "it").prompt_ids(example.messages)
    reply = tokenizer(example.reply + "<|im_end|>", add_special_tokens=False)["input_ids"]
    assert one.n_tokens == len(reply)
    with torch.no_grad():
        logits = load_causal_model(place)(torch.tensor([prompt + reply])).logits[0, len(prompt) - 1 : -1]
    assert one.losses[0] == pytest.approx(float(cross_entropy(logits, torch.tensor(reply))), rel=1e-4)


@pytest.mark.parametrize(
    ("change", "most"),
    [
        ({"micro_batch_tokens": 1}, 1e-3),
        ({"micro_batch_tokens": 700}, 1e-3),
        ({"logits_chunk_tokens": 3}, 1e-3),
        ({"gradient_checkpointing": True}, 1e-4),
    ],
)
def test_what_is_in_memory_at_a_time_changes_rounding_only(model_folder, change, most):
    settings = replace(QUICK, examples_per_step=5)
    whole, parts = (fine_tuned(model_folder, EXAMPLES, each) for each in (settings, replace(settings, **change)))
    assert largest_difference(whole, parts) < most
    assert whole.losses == pytest.approx(parts.losses, rel=1e-4)


def test_adapters_learn_and_are_written_as_a_plain_model(model_folder: str, tmp_path: Path) -> None:
    pytest.importorskip("peft", reason="peft is not installed")
    place = str(chat_folder(tmp_path / "model", CHAT_TEMPLATE))
    examples = examples_for_coder([ADD], PROMPTS)
    found = fine_tuned(place, examples, replace(QUICK, epochs=20, lora=LoraSettings(rank=4)))
    assert found.losses[-1] < found.losses[0]
    found.save(tmp_path / "new", {})
    before, after = load_causal_model(place), load_causal_model(str(tmp_path / "new"))
    assert before.state_dict().keys() == after.state_dict().keys()
    new = after.state_dict()
    changed = {name for name, tensor in before.state_dict().items() if not torch.equal(tensor, new[name])}
    assert changed
    assert all("_proj" in name for name in changed)
    ids = torch.tensor([[5, 6, 7]])
    with torch.no_grad():
        assert torch.allclose(found.model(ids).logits, after(ids).logits, atol=1e-5)


def test_a_model_that_was_saved_can_be_fine_tuned_again(model_folder: str, tmp_path: Path) -> None:
    first = fine_tuned(model_folder, EXAMPLES, QUICK)
    first.save(tmp_path / "new", {"some": "record"})
    assert json.loads((tmp_path / "new" / "sft.json").read_text()) == {"some": "record"}
    assert fine_tuned(str(tmp_path / "new"), EXAMPLES, QUICK).losses[0] < first.losses[0]


def test_held_out_losses_are_measured_by_role_before_and_after(model_folder: str) -> None:
    both = [*EXAMPLES, *examples_for_coder([ADD], PROMPTS)]
    found = fine_tuned(model_folder, EXAMPLES, QUICK, held_out=both)
    assert set(found.held_out_before) == set(found.held_out_after) == {"coder", "tester"}
    assert found.held_out_after["tester"] < found.held_out_before["tester"]
    assert not fine_tuned(model_folder, EXAMPLES, replace(QUICK, epochs=1)).held_out_before


def test_examples_that_are_too_long_are_left_out_and_counted(model_folder: str) -> None:
    short = examples_for_coder([ADD], load_prompts("tiny"))
    found = fine_tuned(model_folder, [*EXAMPLES, *short], replace(QUICK, epochs=1, max_tokens=150))
    assert (found.n_too_long, found.n_steps) == (5, 1)
    with pytest.raises(UserError, match="all 5 examples exceed 10 tokens"):
        fine_tuned(model_folder, EXAMPLES, replace(QUICK, max_tokens=10))
    with pytest.raises(UserError, match="nothing to fine-tune on"):
        fine_tuned(model_folder, [], QUICK)


def test_a_stop_ends_after_the_present_step(model_folder: str) -> None:
    seen: list[tuple[int, int]] = []
    found = fine_tuned(
        model_folder,
        EXAMPLES,
        QUICK,
        progress=lambda done, total: seen.append((done, total)),
        is_stopped=lambda: len(seen) == 4,
    )
    assert seen == [(1, 12), (2, 12), (3, 12), (4, 12)]
    assert (found.n_steps, found.is_interrupted, len(found.losses)) == (4, True, 2)
    with pytest.raises(KeyboardInterrupt):
        fine_tuned(model_folder, EXAMPLES, QUICK, is_stopped=lambda: True)


def test_a_loss_that_is_not_finite_ends_the_training_before_the_step() -> None:
    steps: list[int] = []
    batch, optimiser = SimpleNamespace(n_targets=1), SimpleNamespace(step=steps.append)
    weight = torch.ones(1, requires_grad=True)
    losses = iter([weight * 1.0, weight * float("nan")])
    with pytest.raises(LossNotFinite, match="step 2 is nan"):
        list(supervised_steps([batch, batch], lambda _: iter([next(losses)]), optimiser))
    assert steps == [0]


@pytest.mark.parametrize(
    "wrong",
    [{"epochs": 0}, {"lr": 0.0}, {"lr": float("nan")}, {"grad_clip": 0.0}, {"seed": -1}, {"autocast": "float7"}],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        SftSettings(**wrong)
