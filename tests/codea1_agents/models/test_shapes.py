"""Shapes against the models that `transformers` builds, on `meta`, where weights take no memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

from codea1_agents.models.shapes import PUBLISHED, UnknownShape, read_shape, shape_of  # noqa: E402
from codea1_agents.train.grpo.causal_models import adapted  # noqa: E402
from codea1_agents.train.grpo.settings import LoraSettings  # noqa: E402
from codea1_env.errors import UserError  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")  # of peft and transformers about each other

SMALL = {"vocab_size": 1000, "hidden_size": 48, "intermediate_size": 112, "num_hidden_layers": 3}
SMALL |= {"num_attention_heads": 4, "num_key_value_heads": 2}


def on_meta(config: Any) -> Any:
    with torch.device("meta"):
        return transformers.AutoModelForCausalLM.from_config(config)


def n_parameters(model: Any) -> int:
    return sum(each.numel() for each in model.parameters())  # tied ones are listed once


@pytest.mark.parametrize(
    ("family", "others"),
    [
        ("Qwen2", {"tie_word_embeddings": True}),
        ("Qwen2", {"tie_word_embeddings": False}),
        ("Qwen3", {"head_dim": 20}),
        ("Llama", {"attention_bias": True, "mlp_bias": True}),
        ("Llama", {"head_dim": 8, "tie_word_embeddings": True}),
        ("Mistral", {}),
    ],
)
def test_a_shape_has_the_parameters_of_the_model(family: str, others: dict[str, Any]) -> None:
    config = getattr(transformers, f"{family}Config")(**SMALL, **others)
    shape = read_shape(json.loads(config.to_json_string(use_diff=True)), "m")
    assert shape.parameters == n_parameters(on_meta(config))
    assert shape.context == config.max_position_embeddings


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_shapes_are_those_of_qwen(name: str) -> None:
    shape = PUBLISHED[name]
    counted = {"0.5B": 494_032_768, "1.5B": 1_543_714_304, "3B": 3_085_938_688, "7B": 7_615_616_512}
    assert shape.parameters == next(n for size, n in counted.items() if f"-{size}-" in name)  # as the hub states


def test_adapters_have_the_parameters_of_peft() -> None:
    peft = pytest.importorskip("peft", reason="peft is not installed")
    config = transformers.LlamaConfig(**SMALL)
    lora = LoraSettings(rank=4, target_modules=("q_proj", "v_proj", "down_proj"))
    adapted = peft.get_peft_model(on_meta(config), peft.LoraConfig(r=4, target_modules=list(lora.target_modules)))
    trained = sum(each.numel() for each in adapted.parameters() if each.requires_grad)
    assert read_shape(config.to_dict(), "m").adapter_parameters(lora.rank, lora.target_modules) == trained


@pytest.mark.parametrize("family", ["Llama", "Qwen3"])
@pytest.mark.parametrize("is_tied", [True, False])
def test_layers_get_adapters_by_the_names_that_peft_takes(family: str, is_tied: bool) -> None:
    pytest.importorskip("peft", reason="peft is not installed")
    config = getattr(transformers, f"{family}Config")(**SMALL, tie_word_embeddings=is_tied)
    shape = read_shape(config.to_dict(), "m")
    ends = ("lm_head", "model.embed_tokens", "embed_tokens")
    layers = ("q_proj", "o_proj", "mlp.up_proj", "model.layers.1.self_attn.k_proj", "0.mlp.down_proj", *ends)
    for name in (*layers, "nowhere", "proj", "mlp.q_proj", "model.layers.9.self_attn.q_proj", "k_proj.weight"):
        try:
            adapted(on_meta(config), LoraSettings(target_modules=(name,)))
        except UserError:
            assert shape.why_not_adapted(name), name
        else:
            assert not shape.why_not_adapted(name), name


def test_a_folder_states_its_shape_and_a_lost_one_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transformers.Qwen2Config(**SMALL, tie_word_embeddings=True).save_pretrained(tmp_path)
    assert shape_of(str(tmp_path)).is_tied
    assert shape_of(str(tmp_path)).hidden == 48
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(UnknownShape, match=r"its config\.json is not on this machine"):
        shape_of("nobody/nothing-1B")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"model_type": "gpt2"}, "got 'gpt2'"),
        ({"model_type": "llama", "hidden_size": 3, "intermediate_size": 3}, "does not state num_hidden_layers"),
        ("{", "cannot be read"),
    ],
)
def test_what_is_unknown_is_named(content: Any, said: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(UnknownShape, match=said):
        shape_of(str(tmp_path))
