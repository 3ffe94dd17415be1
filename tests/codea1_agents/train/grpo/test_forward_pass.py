"""A prompt that is computed once, and figures in pieces: the log-probabilities and gradients of plain rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.grpo import largest, scored
from tests.support.language_models import model_of_kind

pytest.importorskip("ray", reason="Ray is not installed")
torch = pytest.importorskip("torch", reason="the extra codea1-env[rllib] is not installed")
from codea1_agents.train.grpo.batch import padded_batch  # noqa: E402
from codea1_agents.train.grpo.causal_models import Abilities, ResponsePass, checkpoint_activations, token_figures  # noqa: E402

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
    "gemma3-window": ("Gemma3Text", WINDOW),
}

_WITHOUT = ("gemma2-window-softcap", "sdpa")  # transformers refuses this pair


def model_of(kind: str, **more: Any) -> Any:
    name, extra = MODELS[kind]
    return model_of_kind(name, **SHAPE, **extra, **more)


def batch() -> dict[str, Any]:
    """Three prompts of different length, with one, two and three responses of different length."""
    lengths = [(13, 9), (4, 1), (4, 7), (9, 12), (9, 3), (9, 5)]
    prompts = {n: scored("coder", n, 1).prompt for n, _ in lengths}
    rows = [replace(scored("coder", n, length, seed=row), prompt=prompts[n]) for row, (n, length) in enumerate(lengths)]
    return padded_batch(rows)


def figures(model: Any, columns: dict[str, Any], *, prompt_once: bool, packed: bool = False) -> Any:
    return ResponsePass(model, Abilities.of(model))(columns, prompt_once=prompt_once, packed=packed)


def gradients(model: Any, values: Any) -> dict[str, Any]:
    weights = torch.linspace(-1, 1, values.numel()).reshape(values.shape)
    (values * weights).sum().backward()
    return {name: each.grad.clone() for name, each in model.named_parameters() if each.grad is not None}


def require_same(model: Any, *, checkpoints: bool = False, **how: bool) -> None:
    """Log-probabilities and gradients of a way to compute are those of plain rows."""
    columns = batch()
    plain = figures(model, columns, prompt_once=False).log_probs
    expected, plain = gradients(model, plain), plain.detach()
    model.zero_grad()
    if checkpoints:
        checkpoint_activations(model)
        model.train()
    other = figures(model, columns, **how).log_probs
    found, other = gradients(model, other), other.detach()
    assert float((plain - other).abs().max()) < 1e-5
    assert float(plain.abs().max()) > 1.0
    assert found.keys() == expected.keys()
    assert max(float((found[name] - expected[name]).abs().max()) for name in expected) < 1e-5 * largest(expected)


@pytest.mark.parametrize(
    ("kind", "attention"),
    [(kind, attention) for kind in MODELS for attention in ("sdpa", "eager") if (kind, attention) != _WITHOUT],
)
def test_prompts_computed_once_give_the_same(kind: str, attention: str) -> None:
    model = model_of(kind, attn_implementation=attention)
    assert Abilities.of(model).repeats_prompts
    require_same(model, prompt_once=True)


@pytest.mark.parametrize("prompt_once", [True, False])
@pytest.mark.parametrize("checkpoints", [True, False])
@pytest.mark.parametrize("kind", ["qwen2", "qwen3", "llama"])
def test_one_row_of_all_tokens_gives_the_same(kind: str, checkpoints: bool, prompt_once: bool) -> None:
    model = model_of(kind)
    assert Abilities.of(model).attends_in_parts
    require_same(model, checkpoints=checkpoints, prompt_once=prompt_once, packed=True)


@pytest.mark.parametrize("prompt_once", [True, False])
def test_parts_of_a_row_attend_as_under_the_mask(prompt_once: bool) -> None:
    """The mask is what graphics processors compute with, and models that do not hand parts on."""
    model, columns = model_of("qwen2"), batch()
    abilities = Abilities.of(model)
    of_pairs = []
    for in_parts in (True, False):
        chosen = replace(abilities, attends_in_parts=in_parts)
        with torch.no_grad():
            of_pairs.append(ResponsePass(model, chosen)(columns, prompt_once=prompt_once, packed=True).log_probs)
    assert float((of_pairs[0] - of_pairs[1]).abs().max()) < 1e-5


def test_only_attention_over_whole_rows_packs() -> None:
    packs = {kind: Abilities.of(model_of(kind)).packs for kind in MODELS}
    assert {kind for kind, each in packs.items() if each} == {"qwen2", "qwen3", "llama"}
    assert not Abilities.of(model_of("qwen2", attn_implementation="eager")).packs  # it would add the mask's 0 and 1
    recurrent = Abilities.of(model_of_kind("Mamba", vocab_size=40, hidden_size=16, num_hidden_layers=1, state_size=4))
    assert (recurrent.packs, recurrent.repeats_prompts) == (False, False)


def test_each_prompt_is_computed_once() -> None:
    model, columns, n_tokens = model_of("qwen2"), batch(), []
    model.model.embed_tokens.register_forward_hook(lambda _, given, __: n_tokens.append(tuple(given[0].shape)))
    for packed in (False, True):
        for prompt_once in (True, False):
            ResponsePass(model, Abilities(True, True, True, False))(columns, prompt_once=prompt_once, packed=packed)
    assert n_tokens == [(3, 13), (6, 11), (6, 25), (1, 26 + 37), (1, 48 + 37)]


def test_a_response_of_one_token_needs_its_prompt_only() -> None:
    model = model_of("llama")
    columns = padded_batch([replace(scored("coder", 5, 1, seed=row), prompt=(3, 4, 5)) for row in range(2)])
    plain, once = (figures(model, columns, prompt_once=flag).log_probs.detach() for flag in (False, True))
    assert plain.shape == (2, 1)
    assert float((plain - once).abs().max()) < 1e-6


def test_a_model_that_caps_its_logits_is_computed_whole() -> None:
    capped, plain = (model_of_kind("Gemma2", **SHAPE, final_logit_softcapping=cap) for cap in (30.0, None))
    assert (Abilities.of(plain).has_plain_head, Abilities.of(capped).has_plain_head) == (True, False)
    plain.lm_head = None
    assert not Abilities.of(plain).has_plain_head


N_ROWS, N_TOKENS, WIDTH, VOCABULARY = 3, 11, 8, 37
MASK = torch.arange(N_TOKENS) < torch.tensor([[11], [4], [1]])


def pieces_of(logits_chunk_tokens: int, *, entropy_gradient: bool = True) -> list[torch.Tensor]:
    """Return log-probabilities, entropies, and the gradients of a sum of them into states and output matrix."""
    draw = torch.Generator().manual_seed(0)
    states = torch.randn(N_ROWS, N_TOKENS, WIDTH, generator=draw, requires_grad=True)
    weight = torch.randn(VOCABULARY, WIDTH, generator=draw, requires_grad=True)
    tokens = torch.randint(VOCABULARY, (N_ROWS, N_TOKENS), generator=draw)
    found = token_figures(
        states,
        lambda part: part @ weight.T,
        tokens,
        MASK,
        logits_chunk_tokens=logits_chunk_tokens,
        entropy_gradient=entropy_gradient,
    )
    (found.log_probs.sum() + found.entropy.square().sum()).backward()
    return [found.log_probs.detach(), found.entropy.detach(), states.grad, weight.grad]


@pytest.mark.parametrize("entropy_gradient", [False, True])
@pytest.mark.parametrize("logits_chunk_tokens", [1, 3, 15, 16, 1000])
def test_pieces_change_neither_figures_nor_gradients(logits_chunk_tokens: int, entropy_gradient: bool) -> None:
    whole, parts = (pieces_of(size, entropy_gradient=entropy_gradient) for size in (0, logits_chunk_tokens))
    for one, other in zip(whole, parts, strict=True):
        assert torch.allclose(one, other, atol=1e-5)  # sums of squares up to 10, in float32


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("logits_chunk_tokens", [0, 3])
def test_an_output_layer_without_gradients_gives_the_same(logits_chunk_tokens: int, temperature: float) -> None:
    draw, head = torch.Generator().manual_seed(3), torch.nn.Linear(WIDTH, VOCABULARY)
    tokens = torch.randint(VOCABULARY, (N_ROWS, N_TOKENS), generator=draw)
    weights = torch.randn(N_ROWS, N_TOKENS, generator=draw)
    states = torch.randn(N_ROWS, N_TOKENS, WIDTH, generator=draw)
    of_both = []
    for has_gradient in (True, False):
        head.requires_grad_(has_gradient)
        own = states.clone().requires_grad_()
        how = {"logits_chunk_tokens": logits_chunk_tokens, "temperature": temperature}
        found = token_figures(own, head, tokens, MASK, **how)
        (found.log_probs * weights).sum().backward()
        of_both.append((found.log_probs.detach(), found.entropy.detach(), own.grad))
    for trained, frozen in zip(*of_both, strict=True):
        assert torch.allclose(trained, frozen, atol=1e-5)
        assert float(trained.abs().max()) > 0.1


def test_they_are_those_of_plain_torch_and_zero_on_padding() -> None:
    draw = torch.Generator().manual_seed(1)
    logits = torch.randn(N_ROWS, N_TOKENS, VOCABULARY, generator=draw)
    tokens = torch.randint(VOCABULARY, (N_ROWS, N_TOKENS), generator=draw)
    found = token_figures(logits, torch.nn.Identity(), tokens, MASK, logits_chunk_tokens=4)
    distribution = torch.distributions.Categorical(logits=logits)
    assert torch.allclose(found.log_probs, distribution.log_prob(tokens) * MASK, atol=1e-6)
    assert torch.allclose(found.entropy, distribution.entropy() * MASK, atol=1e-6)


@pytest.mark.parametrize("logits_chunk_tokens", [16, 64])
def test_parts_in_half_precision_lose_no_bits_of_the_weights_gradient(logits_chunk_tokens: int) -> None:
    """Autocast would share one cast of the weights among all parts, and add up their gradients in its eight bits."""
    draw = torch.Generator().manual_seed(2)
    head = torch.nn.Linear(16, VOCABULARY, bias=False)
    states = torch.randn(1, 4096, 16, generator=draw)
    tokens = torch.randint(VOCABULARY, (1, 4096), generator=draw)

    def gradient(size: int, *, halved: bool) -> torch.Tensor:
        head.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=halved):
            found = token_figures(states, head, tokens, torch.ones_like(tokens) > 0, logits_chunk_tokens=size)
        found.log_probs.sum().backward()
        return head.weight.grad.clone()

    exact = gradient(0, halved=False)
    whole, parts = (float((gradient(size, halved=True) - exact).norm()) for size in (0, logits_chunk_tokens))
    assert parts < 1.5 * whole
