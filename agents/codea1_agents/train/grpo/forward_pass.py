"""Forward passes of a causal language model over prompts and responses, for training.

A group of responses has one prompt. Where the model's cache allows it, the prompt is computed once, and its keys and
values are repeated for each response, with gradients. Log-probabilities and entropies are computed from hidden states
some tokens at a time: the logits of one response of 4,096 tokens at a vocabulary of 152,000 take 2.5 GB, and several
times that with their gradients. The backward pass computes them again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

from codea1_agents.train.grpo.batch import Column
from codea1_agents.train.grpo.causal_models import without_wrapper

_REPEATABLE = (DynamicLayer, DynamicSlidingWindowLayer)  # others are recurrent, compressed or indexed


@dataclass(frozen=True, slots=True)
class Abilities:
    """Which savings a model allows."""

    has_plain_head: bool
    """Whether its logits are what its output layer makes of its last hidden states. Some models change them afterwards,
    by a soft cap or a scale."""
    repeats_prompts: bool
    """Whether its cache of a prompt can be repeated for several responses."""

    @classmethod
    def of(cls, model: Any) -> Abilities:
        """Return the abilities of a model, which computes two tokens."""
        base = without_wrapper(model)
        given = {"input_ids": torch.arange(2, device=base.device).unsqueeze(0)}
        with torch.no_grad():
            return cls(_has_plain_head(base, given), _repeats_prompts(base, given))


class TokenFigures(NamedTuple):
    """Figures of the tokens of B responses, padded to R; 0 on padding."""

    log_probs: Tensor
    """(B, R) float32."""
    entropy: Tensor
    """(B, R) float32, in nats."""


class ResponsePass(torch.nn.Module):  # type: ignore[misc]  # torch is not read
    """A model, with or without adapters, whose forward pass returns the figures of the responses' tokens."""

    def __init__(self, model: Any, abilities: Abilities) -> None:
        super().__init__()
        self.model = model
        self.abilities = abilities

    def forward(
        self, batch: Mapping[str, Tensor], *, prompt_once: bool, in_step: bool = False, **settings: Any
    ) -> TokenFigures:
        """Return the figures of the responses' tokens.

        Args:
            batch: the columns of prompts and responses.
            prompt_once: whether each distinct prompt is computed once.
            in_step: whether any batch takes the same number of passes, as learners of a sharded model must.
            settings: of `token_figures`.
        """
        is_plain = self.abilities.has_plain_head
        head = without_wrapper(self.model).get_output_embeddings() if is_plain else torch.nn.Identity()
        numbers, which = batch[Column.PROMPT_NUMBER].unique(return_inverse=True)
        if not prompt_once or (len(numbers) == len(which) and not in_step):
            states = self._of_whole_rows(batch)
        else:
            states = self._after_prompts(batch, which)
        return token_figures(states, head, batch[Column.RESPONSE_IDS], batch[Column.RESPONSE_MASK], **settings)

    def _of_whole_rows(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Return what predicts each token of the responses: hidden states (B, R, H), or logits (B, R, V).

        They are logits if the model has no plain head.
        """
        ids = torch.cat([batch[Column.PROMPT_IDS], batch[Column.RESPONSE_IDS]], dim=-1)
        mask = torch.cat([batch[Column.PROMPT_MASK], batch[Column.RESPONSE_MASK]], dim=-1)
        return self._last(batch[Column.RESPONSE_IDS].shape[-1] + 1, ids, mask, use_cache=False)[:, :-1]

    def _after_prompts(self, batch: Mapping[str, Tensor], which: Tensor) -> Tensor:
        """Return the same: compute each distinct prompt once, then the responses.

        Args:
            batch: of B rows.
            which: (B,), number of each row's prompt among the distinct ones.
        """
        rows = torch.arange(len(which), device=which.device)
        first = rows.new_empty(int(which.max()) + 1).scatter_(0, which, rows)  # any row of each prompt
        cache = DynamicCache(config=without_wrapper(self.model).config)
        prompts, mask = batch[Column.PROMPT_IDS][first], batch[Column.PROMPT_MASK][first]
        of_prompts = self._last(1, prompts, mask, use_cache=True, past_key_values=cache)
        n_tokens = batch[Column.RESPONSE_IDS].shape[1]
        n_predicting = max(n_tokens - 1, 1)  # the last token predicts nothing
        ids = batch[Column.RESPONSE_IDS][:, :n_predicting]
        cache.reorder_cache(which)
        mask = torch.cat([batch[Column.PROMPT_MASK], batch[Column.RESPONSE_MASK][:, :n_predicting]], dim=-1)
        of_tokens = self._last(n_predicting, ids, mask, use_cache=True, past_key_values=cache)
        return torch.cat([of_prompts[which], of_tokens], dim=1)[:, :n_tokens]

    def _last(self, n: int, ids: Tensor, mask: Tensor, **more: Any) -> Tensor:
        """Return the output (rows, n, H or V) at the last `n` positions."""
        base = without_wrapper(self.model)
        positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        given = {"input_ids": ids, "attention_mask": mask, "position_ids": positions, **more}
        if self.abilities.has_plain_head:
            found: Tensor = base.base_model(**given)[0][:, -n:]
        else:
            found = base(**given, logits_to_keep=n).logits
        return found


def _has_plain_head(base: Any, given: Mapping[str, Tensor]) -> bool:
    body, head = base.base_model, base.get_output_embeddings()
    if head is None or body is base:
        return False
    try:
        logits = head(body(**given, use_cache=False)[0])
    except (RuntimeError, TypeError):  # there is a layer between the two
        return False
    return bool(torch.equal(logits, base(**given, use_cache=False).logits))


def _repeats_prompts(base: Any, given: Mapping[str, Tensor]) -> bool:
    try:
        cache = DynamicCache(config=base.config)
        base(**given, use_cache=True, past_key_values=cache)
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError):  # it has a cache of its own kind
        return False
    n_tokens = given["input_ids"].shape[1]
    return all(type(layer) in _REPEATABLE and layer.get_seq_length() == n_tokens for layer in cache.layers)


def token_figures(
    states: Tensor,
    head: Callable[[Tensor], Tensor],
    tokens: Tensor,
    mask: Tensor,
    *,
    logits_chunk_tokens: int = 0,
    temperature: float = 1.0,
    entropy_gradient: bool = False,
) -> TokenFigures:
    """Return the figures of some responses.

    Args:
        states: (B, R, H), hidden states of the positions that predict the tokens.
        head: makes logits (n, V) of hidden states (n, H).
        tokens: (B, R), int64.
        mask: (B, R), bool: the response's own tokens. The others cost nothing.
        logits_chunk_tokens: tokens whose logits exist at the same time; 0: all. It does not change results.
        temperature: of the distribution, by which logits are divided.
        entropy_gradient: whether the entropy has a gradient.
    """

    def figures(of_states: Tensor, of_tokens: Tensor) -> tuple[Tensor, Tensor]:
        torch.clear_autocast_cache()  # or all parts shared one cast of the weights, and their gradients its few bits
        logits = head(of_states).float()
        if temperature != 1:
            logits = logits / temperature
        with contextlib.nullcontext() if entropy_gradient else torch.no_grad():
            spread = logits.log_softmax(-1)
            entropy = -(spread.exp() * spread).sum(-1)
        return token_log_probs(logits, of_tokens), entropy

    kept_states, kept_tokens = states[mask], tokens[mask]
    size = logits_chunk_tokens or max(len(kept_tokens), 1)
    pieces = list(zip(kept_states.split(size), kept_tokens.split(size), strict=True))
    if len(pieces) > 1 and torch.is_grad_enabled():
        found = [checkpoint(figures, *piece, use_reentrant=False) for piece in pieces]
    else:
        found = [figures(*piece) for piece in pieces]
    log_probs, entropies = (torch.cat(each) for each in zip(*found, strict=True))
    return TokenFigures(_padded(log_probs, mask), _padded(entropies, mask))


def token_log_probs(logits: Tensor, tokens: Tensor) -> Tensor:
    """Return the log-probability of each token.

    Args:
        logits: (..., V), of the position that predicts the token.
        tokens: (...), int64.

    Returns:
        (...), float32.
    """
    logits = logits.float()
    chosen = logits.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    return chosen - logits.logsumexp(dim=-1)


def _padded(values: Tensor, mask: Tensor) -> Tensor:
    """Return (B, R) of one value per True in `mask`, in order."""
    return torch.zeros(mask.shape, dtype=values.dtype, device=values.device).masked_scatter(mask, values)
