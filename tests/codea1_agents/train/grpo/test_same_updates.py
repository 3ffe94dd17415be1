"""Settings of memory and speed, and the number of learners, do not change an update.

All combinations of {plain rows, prompt once, one row with each prompt once} x {logits of 16, 256 and all tokens at
once} x {one row, a budget of tokens} x {all weights, adapters}, on three architectures, are compared with plain rows in
one part on one learner; for two architectures also {one learner, two with DDP}.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.support.grpo import (
    ON_RAY,
    Weights,
    distance,
    gradients_of,
    group_of,
    group_responses,
    largest,
    learning,
    record_gradients,
    update_group,
    weights_in,
)
from tests.support.language_models import model_of_kind, phrase_tokenizer, saved

pytest.importorskip("ray", reason="Ray is not installed")
pytest.importorskip("peft", reason="the extra codea1-env[lora] is not installed")
from codea1_agents.train.grpo import LoraSettings, ModelSettings

pytestmark = ON_RAY

SHAPE = {"vocab_size": 40, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2}
SHAPE |= {"num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 128}
SHAPE |= {"tie_word_embeddings": False}
ARCHITECTURES = {"qwen2": ("Qwen2", {}), "llama": ("Llama", {}), "mistral-window": ("Mistral", {"sliding_window": 6})}
COMBINATIONS = [
    {"prompt_once": once, "packing": packed, "logits_chunk_tokens": logits, **parts}
    for (once, packed), logits, parts in product(
        ((False, False), (True, False), (True, True)),
        (16, 256, 0),
        ({"micro_batch_size": 1}, {"micro_batch_size": 0, "micro_batch_tokens": 60}),
    )
]
PLAIN = {"prompt_once": False, "packing": False, "logits_chunk_tokens": 0, "micro_batch_size": 0}
N_UPDATES = 2
WITH_DDP = [("qwen2", None), ("mistral-window", LoraSettings(rank=2))]
"""Two are enough, since learners are processes that take long to start."""


class Prepared:
    """Changes the settings of a learner, and has it record the first gradients that its optimiser receives."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings

    def __call__(self, learner: Any) -> None:
        config = learner.config.copy(copy_frozen=False)
        learner.config = config.training(**self.settings)
        module = learner.module["coder"].unwrapped()
        of_module = {name: self.settings[name] for name in ("prompt_once", "packing", "logits_chunk_tokens")}
        module.settings = replace(module.settings, **of_module)
        record_gradients(learner)


def updated(group: Any, settings: dict[str, Any], n_learners: int) -> tuple[Weights, Weights]:
    """Return the first gradients and the weights after all updates; the group is as before."""
    before = group.get_state()
    group.foreach_learner(Prepared(settings))
    update_group(group, group_responses("coder"), n_learners, N_UPDATES)
    gradients, weights = gradients_of(group), weights_in(group)
    group.set_state(before)
    return gradients, weights


@pytest.mark.parametrize("lora", [None, LoraSettings(rank=2)], ids=["full", "lora"])
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_combination_makes_the_same_update(name: str, lora: LoraSettings | None, tmp_path: Path) -> None:
    kind, more = ARCHITECTURES[name]
    folder = saved(tmp_path, model_of_kind(kind, **SHAPE, **more), phrase_tokenizer())
    config = learning({"coder": ModelSettings(folder, lora=lora)})
    local = group_of(config.copy(copy_frozen=False))
    gradients, weights = updated(local, PLAIN, 0)
    assert distance(weights_in(local), weights) > 1e-3
    for n_learners in (0, 2) if (name, lora) in WITH_DDP else (0,):
        group = group_of(config.learners(num_learners=n_learners)) if n_learners else local
        for settings in (each for each in COMBINATIONS if not (each["packing"] and "window" in name)):
            found_gradients, found_weights = updated(group, settings, n_learners)
            where = f"{n_learners} learners, {settings}"
            assert distance(gradients, found_gradients) < 1e-5 * largest(gradients["coder"]), where
            assert distance(weights, found_weights) < 1e-5, where
        group.shutdown()
