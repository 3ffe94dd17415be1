"""Sampling whole responses from a causal language model, with the exact log-probability of every token.

Written out instead of calling `generate`: the randomness is each response's own (so that a response does not depend on
which others were sampled beside it, nor on how many workers share the problems), no processor changes the distribution
behind our back, and the log-probabilities are those of the distribution that was sampled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = ["Response", "SamplingRules", "left_padded", "sample_responses"]

PROMPTS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class SamplingRules:
    """How to sample.

    Raises:
        ValueError: a number out of range.
    """

    max_tokens: int = 512
    """Longest response, its end token included."""
    temperature: float = 1.0
    """0 takes the most probable token. Log-probabilities are always those at temperature 1: what is trained."""
    rows_at_once: int = PROMPTS_AT_ONCE
    """Responses that are sampled in one batch."""

    def __post_init__(self) -> None:
        if self.max_tokens < 1 or self.rows_at_once < 1 or not 0 <= self.temperature < float("inf"):
            raise ValueError(f"cannot sample like this: {self}")


@dataclass(frozen=True, slots=True)
class Response:
    """What a model has answered."""

    tokens: tuple[int, ...]
    """The end token included, where one was sampled."""
    log_probs: tuple[float, ...]
    """Of each token, given all before it."""
    is_cut: bool
    """Whether it ended for want of room."""


def sample_responses(
    model: Any,
    prompts: Sequence[Sequence[int]],
    seeds: Sequence[Sequence[int]],
    *,
    end_tokens: Iterable[int],
    pad_token: int,
    rules: SamplingRules,
) -> list[Response]:
    """Return one response per prompt.

    Args:
        model: a causal language model of `transformers`.
        prompts: token ids, none empty.
        seeds: one per prompt: what the randomness of its response descends from.
        end_tokens: ids that end a response.
        pad_token: any id.
        rules: how to sample.

    Raises:
        ValueError: an empty prompt, or not one seed per prompt.
    """
    if len(prompts) != len(seeds) or not all(map(len, prompts)):
        raise ValueError("every response needs a prompt that is not empty, and a seed")
    ends = frozenset(end_tokens)
    # Prompts of like length share a batch, so that little of it is padding.
    order = sorted(range(len(prompts)), key=lambda position: len(prompts[position]))
    found: dict[int, Response] = {}
    for start in range(0, len(order), rules.rows_at_once):
        rows = order[start : start + rules.rows_at_once]
        uniform = np.stack([np.random.default_rng(seeds[row]).random(rules.max_tokens) for row in rows])
        with torch.inference_mode():
            batch = _sampled(model, [prompts[row] for row in rows], uniform, ends, pad_token, rules)
        found.update(zip(rows, batch, strict=True))
    return [found[position] for position in range(len(prompts))]


def left_padded(rows: Sequence[Sequence[int]], pad_token: int) -> tuple[Tensor, Tensor]:
    """Return ids (B, P) int64 that end together, and the mask (B, P) bool of what is not padding."""
    width = max(map(len, rows))
    ids = torch.tensor([[pad_token] * (width - len(row)) + list(row) for row in rows], dtype=torch.int64)
    lengths = torch.tensor([len(row) for row in rows])
    return ids, torch.arange(width) >= (width - lengths).unsqueeze(-1)


def _sampled(
    model: Any,
    prompts: Sequence[Sequence[int]],
    uniform: np.ndarray[Any, np.dtype[np.float64]],
    ends: frozenset[int],
    pad_token: int,
    rules: SamplingRules,
) -> list[Response]:
    device = model.device
    ids, mask = (each.to(device) for each in left_padded(prompts, pad_token))
    draws = torch.from_numpy(uniform).to(device)
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    tokens: list[Tensor] = []
    log_probs: list[Tensor] = []
    is_over = torch.zeros(len(prompts), dtype=torch.bool, device=device)
    end_ids = torch.tensor(sorted(ends), dtype=torch.int64, device=device)
    cache = None
    for step in range(rules.max_tokens):
        output = model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        cache = output.past_key_values
        logits = output.logits[:, -1].float()
        chosen = _drawn(logits, draws[:, step], rules.temperature)
        tokens.append(chosen)
        log_probs.append(logits.log_softmax(-1).gather(-1, chosen.unsqueeze(-1)).squeeze(-1))
        is_over = is_over | torch.isin(chosen, end_ids)
        if bool(is_over.all()):
            break
        ids = chosen.unsqueeze(-1)
        mask = torch.cat([mask, mask.new_ones(len(prompts), 1)], dim=-1)
        positions = positions[:, -1:] + 1
    rows = zip(torch.stack(tokens, 1).tolist(), torch.stack(log_probs, 1).tolist(), strict=True)
    return [_response(row, values, ends) for row, values in rows]


def _drawn(logits: Tensor, uniform: Tensor, temperature: float) -> Tensor:
    """Return, per row, the token at which the distribution function reaches a number in [0, 1)."""
    if temperature == 0:
        return logits.argmax(-1)
    cumulated = (logits.double() / temperature).softmax(-1).cumsum(-1)
    drawn = torch.searchsorted(cumulated, uniform.unsqueeze(-1) * cumulated[:, -1:], right=True).squeeze(-1)
    return drawn.clamp(max=logits.shape[-1] - 1)


def _response(tokens: list[int], log_probs: list[float], ends: frozenset[int]) -> Response:
    length = next((position + 1 for position, token in enumerate(tokens) if token in ends), len(tokens))
    is_cut = tokens[length - 1] not in ends
    return Response(tuple(tokens[:length]), tuple(log_probs[:length]), is_cut)
