"""Nineteen architectures of `transformers`, built on the spot: each is sampled as a learner computes it, and trains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.grpo import ON_RAY, built, distance, tiny_config, weights_of
from tests.support.language_models import PHRASES, model_of_kind, phrase_tokenizer, saved

pytest.importorskip("ray", reason="Ray is not installed")

from codea1_agents.train.failures import SamplerDiffers

pytestmark = [*ON_RAY, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # their fast kernels need a GPU

SHAPE = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "max_position_embeddings": 64}
SHAPE |= {"num_attention_heads": 4, "num_key_value_heads": 2, "bos_token_id": None, "eos_token_id": 1}
SHAPE |= {"vocab_size": 3 + len(PHRASES), "pad_token_id": 2}
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 16, "head_dim": 8}
WINDOW = {"sliding_window": 16, "head_dim": 8}
MAMBA = {"mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_state": 8, "mamba_n_groups": 1, "mamba_chunk_size": 16}
LINEAR = {"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 8}
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "Llama": {},
    "Qwen2": {},
    "Qwen3": {"head_dim": 8},
    "Gemma2": WINDOW,
    "Gemma3Text": WINDOW,
    "Mistral": {},
    "Phi3": {},
    "GPTNeoX": {},
    "Mamba": {"state_size": 8},
    "Mamba2": {"num_heads": 8, "head_dim": 8, "state_size": 8, "n_groups": 2, "expand": 2, "chunk_size": 16},
    "FalconH1": {"mamba_d_ssm": 32, **MAMBA},
    "Olmo2": {},
    "SmolLM3": {},
    "Granite": {},
    "GptOss": {"num_local_experts": 4, **EXPERTS, **WINDOW},
    "Lfm2": {"full_attn_idxs": [1]},
    "Qwen3Moe": {"num_experts": 4, **EXPERTS},
    "Qwen3Next": {
        "num_hidden_layers": 4,
        "num_experts": 4,
        "shared_expert_intermediate_size": 16,
        **EXPERTS,
        **LINEAR,
    },
    "Jamba": {"num_hidden_layers": 4, "num_experts": 2, "attn_layer_period": 2, "attn_layer_offset": 1},
}


def folder_of(name: str, folder: Path, **shape: Any) -> str:
    """Write a model of random weights that says the phrases of `phrase_tokenizer`."""
    return saved(folder, model_of_kind(name, **SHAPE | shape), phrase_tokenizer())


def test_a_model_that_is_sampled_without_its_context_is_refused(tmp_path: Path, increments: str) -> None:
    folder = folder_of("RecurrentGemma", tmp_path, num_hidden_layers=3)
    config = tiny_config({"coder": folder}, increments).agents(tester="examples")
    told = r"'coder': sampler and learner .* allowed are 0\.001 and 0\.02"
    with (
        built(config.training(max_tokens={"coder": 8}, problems_per_step=3)) as algorithm,
        pytest.raises(SamplerDiffers, match=told),
    ):
        algorithm.train()


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_it_trains_on_what_it_sampled(name: str, tmp_path: Path, increments: str) -> None:
    folder = folder_of(name, tmp_path, **ARCHITECTURES[name])
    config = tiny_config({"coder": folder}, increments).agents(tester="examples")
    config.training(max_tokens={"coder": 4}, problems_per_step=3)
    with built(config) as algorithm:
        before = weights_of(algorithm)
        for _ in range(2):
            figures = algorithm.train()["learners"]["coder"]
            assert float(figures["sampler_gap_max"]) < 1e-3
            assert float(figures["grad_norm"]) > 0
        assert distance(before, weights_of(algorithm)) > 0
