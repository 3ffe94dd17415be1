"""A prompt that is computed once gives the log-probabilities and the gradients of plain rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.grpo import scored

pytest.importorskip("ray", reason="Ray is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
from codea1_agents.train.grpo.batches import padded_batch  # noqa: E402
from codea1_agents.train.grpo.forward_pass import Abilities, figures_of_responses, states_of_responses  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")  # of transformers

SHAPE = {"vocab_size": 40, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "pad_token_id": 0}
SHAPE |= {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "max_position_embeddings": 128}
WINDOW = {"sliding_window": 6}
MODELS = {
    "qwen2": ("Qwen2", {}),
    "qwen2-window": ("Qwen2", {**WINDOW, "use_sliding_window": True, "max_window_layers": 1}),
    "qwen3": ("Qwen3", {}),
    "llama": ("Llama", {}),
    "mistral-window": ("Mistral", WINDOW),
    "gemma2-window-softcap": ("Gemma2", {**WINDOW, "final_logit_softcapping": 5.0, "query_pre_attn_scalar": 16}),
    "gemma3-window": ("Gemma3", WINDOW),
}

_WITHOUT = ("gemma2-window-softcap", "sdpa")  # transformers refuses this pair


def model_of(kind: str, **more: Any) -> Any:
    name, extra = MODELS[kind]
    text = "Text" if name == "Gemma3" else ""
    config = getattr(transformers, f"{name}{text}Config")(**SHAPE, **extra, **more)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return getattr(transformers, f"{name}ForCausalLM")(config).eval()


def batch() -> dict[str, Any]:
    """Three prompts of different length, with one, two and three responses of different length."""
    lengths = [(13, 9), (4, 1), (4, 7), (9, 12), (9, 3), (9, 5)]
    prompts = {n: scored("coder", n, 1).prompt for n, _ in lengths}
    rows = [replace(scored("coder", n, length, seed=row), prompt=prompts[n]) for row, (n, length) in enumerate(lengths)]
    return padded_batch(rows)


def figures(model: Any, columns: dict[str, Any], *, prompt_once: bool) -> Any:
    return figures_of_responses(model, columns, Abilities.of(model), prompt_once=prompt_once)


def gradients(model: Any, values: Any) -> dict[str, Any]:
    weights = torch.linspace(-1, 1, values.numel()).reshape(values.shape)
    (values * weights).sum().backward()
    return {name: each.grad.clone() for name, each in model.named_parameters() if each.grad is not None}


@pytest.mark.parametrize(
    ("kind", "attention"),
    [(kind, attention) for kind in MODELS for attention in ("sdpa", "eager") if (kind, attention) != _WITHOUT],
)
def test_prompts_computed_once_give_the_same(kind: str, attention: str) -> None:
    model, columns = model_of(kind, attn_implementation=attention), batch()
    assert Abilities.of(model).repeats_prompts
    plain = figures(model, columns, prompt_once=False).log_probs
    expected, plain = gradients(model, plain), plain.detach()
    model.zero_grad()
    once = figures(model, columns, prompt_once=True).log_probs
    found, once = gradients(model, once), once.detach()
    assert float((plain - once).abs().max()) < 1e-5
    assert float(plain.abs().max()) > 1.0
    assert found.keys() == expected.keys()
    scale = max(float(each.abs().max()) for each in expected.values())
    assert max(float((found[name] - expected[name]).abs().max()) for name in expected) < 1e-5 * scale


def test_each_prompt_is_computed_once() -> None:
    model, columns, n_tokens = model_of("qwen2"), batch(), []
    model.model.embed_tokens.register_forward_hook(lambda _, given, __: n_tokens.append(tuple(given[0].shape)))
    for prompt_once in (True, False):
        states_of_responses(model, columns, Abilities(True, True), prompt_once=prompt_once)
    assert n_tokens == [(3, 13), (6, 11), (6, 25)]


def test_a_response_of_one_token_needs_its_prompt_only() -> None:
    model = model_of("llama")
    rows = [replace(scored("coder", 5, 1, seed=row), prompt=(3, 4, 5)) for row in range(2)]
    columns = padded_batch(rows)
    plain, once = (figures(model, columns, prompt_once=flag).log_probs for flag in (False, True))
    plain, once = plain.detach(), once.detach()
    assert plain.shape == (2, 1)
    assert float((plain - once).abs().max()) < 1e-6


def test_a_recurrent_model_has_plain_rows() -> None:
    shape = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 1, "state_size": 4}
    model = transformers.MambaForCausalLM(transformers.MambaConfig(**shape)).eval()
    assert not Abilities.of(model).repeats_prompts


def test_a_model_that_caps_its_logits_is_computed_whole() -> None:
    shape = {**SHAPE, "num_hidden_layers": 1, "initializer_range": 0.01}
    config, kind = transformers.Gemma2Config, transformers.Gemma2ForCausalLM
    capped = kind(config(**shape, final_logit_softcapping=30.0)).eval()
    plain = kind(config(**shape, final_logit_softcapping=None)).eval()
    assert (Abilities.of(plain).has_plain_head, Abilities.of(capped).has_plain_head) == (True, False)
    plain.lm_head = None
    assert not Abilities.of(plain).has_plain_head
