"""The arithmetic against the bytes that a CPU allocates, within 10 %."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from tests.support.language_models import byte_tokenizer, random_model, saved

pytest.importorskip("ray", reason="Ray is not installed")
from benchmarks.learner_bytes import Rows, computed, measured
from codea1_agents.train.grpo.settings import LoraSettings, ModelSettings

pytestmark = pytest.mark.filterwarnings("default")  # of peft and transformers about each other

TOLERANCE = 0.1
SHAPE = {"vocab_size": 4096, "hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 3}
SHAPE |= {"num_attention_heads": 4, "num_key_value_heads": 2}
CHECKPOINTING: dict[str, Any] = {"autocast": "bfloat16", "gradient_checkpointing": True}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    model = random_model(0, **SHAPE, tie_word_embeddings=True)
    return saved(tmp_path_factory.mktemp("model"), model, byte_tokenizer())


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({}, Rows(2, 64, 128)),
        ({"autocast": "bfloat16"}, Rows(1, 64, 128)),
        ({}, Rows(4, 96, 64, have_one_prompt=True)),
        ({"packing": True}, Rows(4, 96, 64)),
        ({"packing": True}, Rows(4, 96, 64, have_one_prompt=True)),
        ({"gradient_checkpointing": True}, Rows(2, 64, 128)),
        (CHECKPOINTING, Rows(2, 64, 128)),
        ({**CHECKPOINTING, "lora": LoraSettings()}, Rows(2, 64, 128)),
        ({"autocast": "bfloat16", "packing": True, "lora": LoraSettings()}, Rows(4, 96, 64, have_one_prompt=True)),
    ],
    ids=[
        "plain",
        "one row",
        "one prompt",
        "packed",
        "packed, one prompt",
        "checkpointing",
        "bfloat16",
        "lora",
        "laptop",
    ],
)
def test_bytes_are_as_computed(options: dict[str, Any], rows: Rows, folder: str) -> None:
    if "lora" in options:
        pytest.importorskip("peft", reason="peft is not installed")
    settings = ModelSettings(folder, logits_chunk_tokens=64, **options)
    by_arithmetic, allocated = computed(settings, rows), measured(settings, rows)
    for each in fields(allocated):
        expected, found = (getattr(of, each.name) for of in (by_arithmetic, allocated))
        assert found == pytest.approx(expected, rel=TOLERANCE), each.name
    assert by_arithmetic.weights == allocated.weights
    assert by_arithmetic.adamw == allocated.adamw
