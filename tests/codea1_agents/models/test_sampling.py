"""Responses and their log-probabilities are those of the model, whatever else is in the batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.language_models import END, PAD, model_of_kind, tiny_model

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")
from codea1_agents.models import processor_attention, sampling  # noqa: E402
from codea1_agents.models.sampling import Response, SamplingRules, sample_responses, stream_responses  # noqa: E402

PROMPTS = [[1, 2, 3], [4], [5, 6, 7, 8, 9, 10, 11], [12, 13]]
SEEDS = [[0, n] for n in range(len(PROMPTS))]


def sampled(
    prompts: list[list[int]] = PROMPTS, seeds: list[list[int]] = SEEDS, model: Any = None, **rules: float
) -> list[Response]:
    settings = SamplingRules(**{"max_tokens": 12, **rules})  # type: ignore[arg-type]
    return sample_responses(model or tiny_model(), prompts, seeds, end_tokens=[END], rules=settings)


def test_log_probs_are_those_of_one_forward_pass_without_padding_or_cache() -> None:
    model = tiny_model()
    for prompt, response in zip(PROMPTS, sampled(), strict=True):
        with torch.no_grad():
            logits = model(torch.tensor([[*prompt, *response.tokens]])).logits[0, len(prompt) - 1 : -1]
        expected = logits.log_softmax(-1).gather(-1, torch.tensor(response.tokens).unsqueeze(-1)).squeeze(-1)
        assert np.allclose(response.log_probs, expected, atol=1e-5)


def test_a_response_does_not_depend_on_its_batch() -> None:
    together = sampled()
    one_by_one = [sampled([prompt], [seed])[0] for prompt, seed in zip(PROMPTS, SEEDS, strict=True)]
    in_pairs = sampled(micro_batch_size=2)
    assert [r.tokens for r in together] == [r.tokens for r in one_by_one] == [r.tokens for r in in_pairs]


def test_prompts_that_are_asked_several_times_are_read_once_and_answered_as_if_alone() -> None:
    model, read = tiny_model(), []
    model.register_forward_pre_hook(lambda _, __, given: read.append(tuple(given["input_ids"].shape)), with_kwargs=True)
    prompts = [PROMPTS[0], PROMPTS[2], PROMPTS[0], PROMPTS[3], PROMPTS[0], PROMPTS[2]]
    seeds = [[3, n] for n in range(len(prompts))]
    found = sample_responses(model, prompts, seeds, end_tokens=[], rules=SamplingRules(max_tokens=9))
    assert read == [(3, 7), *[(6, 1)] * 8]
    alone = [sampled([prompt], [seed], max_tokens=9)[0] for prompt, seed in zip(prompts, seeds, strict=True)]
    assert [r.tokens for r in found] == [r.tokens for r in alone]
    assert all(np.allclose(a.log_probs, b.log_probs, atol=1e-5) for a, b in zip(found, alone, strict=True))


def test_responses_that_are_over_cost_no_more_and_the_others_do_not_notice() -> None:
    model = tiny_model()
    with torch.no_grad():
        model.lm_head.weight[END] += 0.6
    sizes: list[int] = []
    prompts, seeds = PROMPTS * 16, [[5, n] for n in range(16 * len(PROMPTS))]
    alone = [sampled([prompts[n]], [seeds[n]], model, max_tokens=40)[0] for n in range(8)]
    model.register_forward_pre_hook(lambda _, __, given: sizes.append(len(given["input_ids"])), with_kwargs=True)
    found = sampled(prompts, seeds, model, max_tokens=40)
    assert [r.tokens for r in found[:8]] == [r.tokens for r in alone]
    assert sizes[1:] == sorted(sizes[1:], reverse=True)
    n_tokens = sum(len(r.tokens) for r in found)
    assert n_tokens < 0.6 * 64 * 40, "or there would be nothing to drop"
    assert sum(sizes[1:]) < 1.5 * n_tokens


def test_a_response_that_ends_makes_room_for_the_next_whose_prompt_may_be_longer_or_shorter() -> None:
    model = tiny_model()
    with torch.no_grad():
        model.lm_head.weight[END] += 0.6
    prompts, seeds = PROMPTS * 8, [[5, n] for n in range(8 * len(PROMPTS))]
    prompts[9], limits = [3] * 30, {"max_tokens": 40, "micro_batch_size": 4}
    alone = [sampled([prompts[n]], [seeds[n]], model, **limits)[0] for n in range(len(prompts))]
    shapes: list[tuple[int, ...]] = []
    model.register_forward_pre_hook(lambda _, __, given: shapes.append(given["attention_mask"].shape), with_kwargs=True)
    rules = SamplingRules(**limits)
    ended = list(stream_responses(model, prompts, seeds, [END], rules))
    assert [each.position for each in ended] != sorted(each.position for each in ended)
    for each in ended:
        assert each.response.tokens == alone[each.position].tokens
        assert np.allclose(each.response.log_probs, alone[each.position].log_probs, atol=1e-5)
    n_tokens = sum(response.n_tokens for response in alone)
    assert len(shapes) < 0.6 * n_tokens, "most steps have several rows"
    assert max(rows for rows, _ in shapes) == 4
    assert max(columns for _, columns in shapes) <= 70, "no column is kept that no row needs"


@pytest.mark.parametrize("kind", ["Mamba", "Gemma2"])
def test_models_whose_state_cannot_be_joined_sample_batch_after_batch(kind: str) -> None:
    shape = {"vocab_size": 260, "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "sliding_window": 8}
    others = {"state_size": 4, "pad_token_id": PAD, "eos_token_id": END}
    model = model_of_kind(kind, **shape, **heads, **others)
    prompts, seeds = [[n + 1, 2, 3] for n in range(6)], [[n] for n in range(6)]
    together = sampled(prompts, seeds, model, micro_batch_size=4)
    alone = [sampled([prompts[n]], [seeds[n]], model)[0] for n in range(6)]
    assert [each.tokens for each in together] == [each.tokens for each in alone]


def test_seeds_decide_and_the_global_generator_is_left_alone() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    assert sampled() == sampled()
    assert torch.equal(torch.get_rng_state(), before)
    others = [[1, n] for n in range(len(PROMPTS))]
    assert [r.tokens for r in sampled(seeds=others)] != [r.tokens for r in sampled()]
    assert sampled(seeds=others, temperature=0.0) == sampled(temperature=0.0)


def test_tokens_come_as_often_as_they_are_probable() -> None:
    model = tiny_model()
    with torch.no_grad():
        probabilities = model(torch.tensor([[1, 2, 3]])).logits[0, -1].softmax(-1).numpy()
    n = 4000
    found = sampled([[1, 2, 3]] * n, [[seed] for seed in range(n)], model, max_tokens=1, micro_batch_size=1000)
    counts = np.bincount([response.tokens[0] for response in found], minlength=len(probabilities))
    assert np.abs(counts / n - probabilities).max() < 5 * np.sqrt(probabilities.max() / n)


@pytest.mark.parametrize("top_p", [1.0, 0.6])
def test_a_number_draws_the_token_whose_share_it_lies_in_and_never_one_without_weight(top_p: float) -> None:
    draw = np.random.default_rng(0)
    logits = torch.from_numpy(draw.normal(size=(600, 1300)) * 4)
    logits[:, :40] = logits[:, -40:] = -torch.inf
    logits[0] = -torch.inf
    logits[0, 7] = 0.0
    uniform = torch.from_numpy(draw.random((600, 1)))
    uniform[::3], uniform[1::3] = 0.0, 1 - 2.0**-53
    chosen, log_probs = sampling._drawn(logits, uniform, 1.0, top_p)
    exact = logits.float().double().softmax(-1)
    assert (exact.gather(1, chosen) > 0).all()
    assert np.allclose(log_probs, exact.gather(1, chosen).log(), atol=1e-5)
    ranked = exact.sort(-1, descending=True)
    is_kept = ranked.values.cumsum(-1) - ranked.values < top_p
    kept = torch.zeros_like(exact).scatter(-1, ranked.indices, ranked.values * is_kept)
    expected = (kept.cumsum(-1) <= uniform * kept.sum(-1, keepdim=True)).sum(-1, keepdim=True)
    n_other = int((chosen != expected)[2::3].sum())
    assert n_other <= 1, "float32 weights may decide one near tie"
    assert (chosen[0], chosen[1]) == (7, int(kept[1].nonzero().max()))


def test_a_response_ends_with_the_end_token_or_is_cut() -> None:
    model = tiny_model()
    with torch.no_grad():
        model.lm_head.weight[END] += 0.3
    found = sampled([[1]] * 64, [[n] for n in range(64)], model, max_tokens=40)
    assert {response.is_cut for response in found} == {True, False}
    for response in found:
        assert len(response.tokens) == len(response.log_probs)
        assert response.is_cut == (response.tokens[-1] != END)
        assert END not in response.tokens[:-1]
        assert len(response.tokens) == 40 or not response.is_cut


@pytest.mark.parametrize("wrong", [{"max_tokens": 0}, {"temperature": -1}, {"micro_batch_size": 0}])
def test_impossible_rules_and_empty_prompts_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="out of range"):
        sampled(**wrong)
    with pytest.raises(ValueError, match="not empty"):
        sampled([[]], [[0]])


def test_top_p_keeps_the_most_probable_tokens_that_reach_it() -> None:
    model, prompt = tiny_model(), [1, 2, 3]
    with torch.no_grad():
        probable = model(torch.tensor([prompt])).logits[0, -1].softmax(-1).sort(descending=True)
    n_kept = int((probable.values.cumsum(-1) < 0.05).sum()) + 1
    seeds = [[0, n] for n in range(400)]
    found = sampled([prompt] * 400, seeds, model, max_tokens=1, top_p=0.05, micro_batch_size=1000)
    assert {response.tokens[0] for response in found} == set(probable.indices[:n_kept].tolist())
    assert n_kept < 30


def test_processors_read_a_frozen_output_layer_once_and_keys_once_for_their_heads(monkeypatch: Any) -> None:
    """PyTorch copies the layer once a row for states that are a view; `transformers` repeats no keys under a mask."""
    model, are_whole, masks = tiny_model().requires_grad_(False), [], []
    plain, equal = processor_attention.sdpa_attention_forward, [[3, 4, 5], [5, 4, 3]]

    def attend(module: Any, query: Any, key: Any, value: Any, mask: Any, **settings: Any) -> Any:
        masks.append(query.shape[2] > 1 or mask is not None)
        return plain(module, query, key, value, mask, **settings)

    monkeypatch.setattr(processor_attention, "sdpa_attention_forward", attend)
    before = sampled(equal, SEEDS[:2], model)
    head = model.get_output_embeddings()
    head.register_forward_pre_hook(lambda _, states: are_whole.append(states[0].is_contiguous()))
    assert sampled(equal, SEEDS[:2], model) == before
    assert all(masks)
    assert all(are_whole)
    assert len(head._forward_pre_hooks) == 2
