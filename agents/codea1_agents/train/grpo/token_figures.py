"""Log-probabilities and entropies of response tokens, computed from hidden states some tokens at a time.

The logits of one response of 4,096 tokens at a vocabulary of 152,000 take 2.5 GB, and several times that with their
gradients. Here the logits of a few tokens exist at a time; the backward pass computes them again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint


@dataclass(frozen=True, slots=True)
class TokenFigures:
    """Figures of the tokens of B responses, padded to R; 0 on padding."""

    log_probs: Tensor
    """(B, R) float32."""
    entropy: Tensor
    """(B, R) float32, in nats."""


def token_figures(
    states: Tensor,
    head: Callable[[Tensor], Tensor],
    tokens: Tensor,
    mask: Tensor,
    *,
    logits_at_once: int = 0,
    temperature: float = 1.0,
    entropy_gradient: bool = False,
) -> TokenFigures:
    """Return the figures of some responses.

    Args:
        states: (B, R, H), hidden states of the positions that predict the tokens.
        head: makes logits (n, V) of hidden states (n, H).
        tokens: (B, R), int64.
        mask: (B, R), bool: the response's own tokens. The others cost nothing.
        logits_at_once: tokens whose logits exist at the same time; 0: all. It does not change results.
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
    size = logits_at_once or max(len(kept_tokens), 1)
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
