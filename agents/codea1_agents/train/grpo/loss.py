"""GRPO's loss on tokens, as pure functions of tensors (method.md 1.9; the release takes verl's).

Shapes: B responses, R tokens each, right-padded; masks are True on the response's own tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_MAX_LOG_RATIO = 20.0  # exp of more is no use to anyone and overflows in half precision
_MAX_KL = 10.0  # verl clamps its estimate there


@dataclass(frozen=True, slots=True)
class LossRules:
    """Constants of the loss; the defaults are the paper's.

    Raises:
        ValueError: a constant outside its range.
    """

    clip_low: float = 0.2
    clip_high: float = 0.28
    dual_clip: float = 10.0
    """Bounds the loss of a token with negative advantage; above 1."""
    kl_coeff: float = 0.001
    entropy_coeff: float = 0.0

    def __post_init__(self) -> None:
        if not (0 < self.clip_low < 1 and self.clip_high > 0 and self.dual_clip > 1 and self.kl_coeff >= 0):
            raise ValueError(f"not a clipped policy loss: {self}")


@dataclass(frozen=True, slots=True)
class LossParts:
    """A loss and what it consists of; scalars, sums over tokens weighted by `token_weight`."""

    loss: Tensor
    """With gradient; all others without."""
    policy: Tensor
    kl: Tensor
    entropy: Tensor
    clip_share: Tensor
    """Weight of tokens whose ratio is clipped."""
    dual_clip_share: Tensor
    ratio_gap: Tensor
    """Largest |log ratio| of this policy to the one that sampled, among tokens that weigh something."""


def token_log_probs(logits: Tensor, tokens: Tensor) -> Tensor:
    """Return the log-probability of each token.

    Args:
        logits: (B, R, V), of the position that predicts the token.
        tokens: (B, R), int64.

    Returns:
        (B, R), float32.
    """
    logits = logits.float()
    chosen = logits.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    return chosen - logits.logsumexp(dim=-1)


def low_variance_kl(log_probs: Tensor, reference: Tensor) -> Tensor:
    """Return the estimate `exp(d) - d - 1` of the divergence per token, where d = reference - log_probs (k3).

    Never negative; at most 10.
    """
    difference = (reference - log_probs).clamp(-_MAX_LOG_RATIO, _MAX_LOG_RATIO)
    return (difference.exp() - difference - 1.0).clamp(max=_MAX_KL)


def grpo_loss(
    *,
    log_probs: Tensor,
    sampled_log_probs: Tensor,
    reference_log_probs: Tensor | None,
    entropy: Tensor | None,
    advantages: Tensor,
    mask: Tensor,
    token_weight: Tensor,
    rules: LossRules,
) -> LossParts:
    """Return the loss of some responses.

    Args:
        log_probs: (B, R), of the policy that learns, with gradient.
        sampled_log_probs: (B, R), of the policy that sampled the tokens, at that time.
        reference_log_probs: (B, R), of the frozen reference; None: no divergence term.
        entropy: (B, R), of the policy, with gradient where it is part of the loss; None: not computed, then 0.
        advantages: (B,), one per response.
        mask: (B, R), bool.
        token_weight: (B,), weight of each token of a response. With 1 / (tokens in the global batch) the losses of any
            parts of a batch add up to the mean over its tokens.
        rules: constants.
    """
    weight = mask * token_weight.unsqueeze(-1)
    # A padded position may hold anything, nan included, and must not reach the gradient.
    log_probs, sampled = (torch.where(mask, each, 0.0) for each in (log_probs, sampled_log_probs))
    log_ratio = log_probs - sampled
    ratio = log_ratio.clamp(-_MAX_LOG_RATIO, _MAX_LOG_RATIO).exp()
    advantage = advantages.unsqueeze(-1)
    plain = -advantage * ratio
    clipped = -advantage * ratio.clamp(1.0 - rules.clip_low, 1.0 + rules.clip_high)
    pessimistic = torch.maximum(plain, clipped)
    bound = -advantage * rules.dual_clip
    is_bounded = (advantage < 0) & (pessimistic > bound)
    policy = (torch.where(is_bounded, bound.expand_as(pessimistic), pessimistic) * weight).sum()
    kl = spread = torch.zeros_like(policy)
    if reference_log_probs is not None:
        kl = (low_variance_kl(log_probs, torch.where(mask, reference_log_probs, 0.0)) * weight).sum()
    if entropy is not None:
        spread = (torch.where(mask, entropy, 0.0) * weight).sum()
    loss = policy + rules.kl_coeff * kl - rules.entropy_coeff * spread
    return LossParts(
        loss=loss,
        policy=policy.detach(),
        kl=kl.detach(),
        entropy=spread.detach(),
        clip_share=((clipped > plain) * weight).sum().detach(),
        dual_clip_share=(is_bounded * weight).sum().detach(),
        ratio_gap=(log_ratio.detach().abs() * (weight > 0)).max(),
    )
