"""The token loss of GRPO, as pure functions of tensors. The official code uses verl's `core_algos`, which these follow.

Shapes: B responses of R tokens each, padded on the right. Masks are True on the tokens of the response.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from codea1_agents.train.grpo.hyperparameters import LossSettings

_MAX_LOG_RATIO = 20.0  # the exponential of more overflows in half precision
_MAX_KL = 10.0  # as verl clamps its estimate


@dataclass(frozen=True, slots=True)
class LossParts:
    """A loss and its parts: scalars, each a sum over tokens weighted by `token_weight`."""

    loss: Tensor
    """Has a gradient; the others have none."""
    policy: Tensor
    kl: Tensor
    entropy: Tensor
    clip_share: Tensor
    """Weight of the tokens whose ratio is clipped."""
    dual_clip_share: Tensor
    """Weight of the tokens whose loss is bounded by `dual_clip`."""
    ratio_gap: Tensor
    """Largest |log ratio| of this policy to the old one, over tokens of positive weight."""


def low_variance_kl(log_probs: Tensor, reference: Tensor) -> Tensor:
    """Return the estimate `exp(d) - d - 1` (k3) of the divergence per token, where d = reference - log_probs.

    It lies in [0, 10].
    """
    difference = (reference - log_probs).clamp(-_MAX_LOG_RATIO, _MAX_LOG_RATIO)
    return (difference.exp() - difference - 1.0).clamp(max=_MAX_KL)


def grpo_loss(
    *,
    log_probs: Tensor,
    old_log_probs: Tensor,
    reference_log_probs: Tensor | None,
    entropy: Tensor | None,
    advantages: Tensor,
    mask: Tensor,
    token_weight: Tensor,
    settings: LossSettings,
    importance: Tensor | None = None,
) -> LossParts:
    """Return the loss of some responses.

    Args:
        log_probs: (B, R), of the policy in training, with gradient.
        old_log_probs: (B, R), of the policy before its first update of the iteration, or of the sampler, whose policy
            it was.
        reference_log_probs: (B, R), of the frozen reference; None: no divergence term.
        entropy: (B, R), of the policy, with gradient if it is part of the loss; None: counts as 0.
        advantages: (B, R), one per token.
        mask: (B, R), bool.
        token_weight: (B,), weight of each token of a response. With 1 / (tokens in the global batch), the losses of
            the parts of a batch add up to the mean over its tokens.
        settings: constants.
        importance: (B, R), weight of the policy loss of each token; None: 1. See `importance_weights`.
    """
    weight = mask * token_weight.unsqueeze(-1)
    # Padding may hold any value, also nan, and must not reach the gradient.
    log_probs, old = (torch.where(mask, each, 0.0) for each in (log_probs, old_log_probs))
    log_ratio = log_probs - old
    ratio = _ratio(log_ratio)
    plain = -advantages * ratio
    clipped = -advantages * ratio.clamp(1.0 - settings.clip_low, 1.0 + settings.clip_high)
    pessimistic = torch.maximum(plain, clipped)
    bound = -advantages * settings.dual_clip
    is_bounded = (advantages < 0) & (pessimistic > bound)
    weighted = weight if importance is None else weight * torch.where(mask, importance, 0.0)
    policy = (torch.where(is_bounded, bound, pessimistic) * weighted).sum()
    kl = spread = torch.zeros_like(policy)
    if reference_log_probs is not None:
        kl = (low_variance_kl(log_probs, torch.where(mask, reference_log_probs, 0.0)) * weight).sum()
    if entropy is not None:
        spread = (torch.where(mask, entropy, 0.0) * weight).sum()
    loss = policy + settings.kl_coeff * kl - settings.entropy_coeff * spread
    return LossParts(
        loss=loss,
        policy=policy.detach(),
        kl=kl.detach(),
        entropy=spread.detach(),
        clip_share=((clipped > plain) * weight).sum().detach(),
        dual_clip_share=(is_bounded * weight).sum().detach(),
        ratio_gap=(log_ratio.detach().abs() * (weight > 0)).max(),
    )


def _ratio(log_ratio: Tensor) -> Tensor:
    return log_ratio.clamp(-_MAX_LOG_RATIO, _MAX_LOG_RATIO).exp()


def importance_weights(log_probs: Tensor, sampled_log_probs: Tensor, cap: float) -> Tensor:
    """Return the ratio of the learner's to the sampler's probability of each token, at most `cap`.

    It corrects the loss for samples of a policy that differs by rounding or staleness (truncated importance sampling).
    """
    return _ratio(log_probs - sampled_log_probs).clamp(max=cap)


@dataclass(frozen=True, slots=True)
class SamplerGap:
    """How far a learner's policy lies from its sampler's before the first update; sums weighted by `token_weight`."""

    gap: Tensor
    """Of |difference of log-probabilities|."""
    gap_max: Tensor
    ratio: Tensor
    """Of the learner's to the sampler's probability."""
    squared_ratio: Tensor
    truncated_share: Tensor
    """Weight of the tokens whose ratio is above the cap; 0 without a cap."""


def sampler_gap(
    log_probs: Tensor, sampled_log_probs: Tensor, mask: Tensor, token_weight: Tensor, cap: float
) -> SamplerGap:
    """Return the gap of some responses; shapes as in `grpo_loss`."""
    weight = mask * token_weight.unsqueeze(-1)
    difference = torch.where(mask, log_probs.detach() - sampled_log_probs, 0.0)
    ratio = _ratio(difference)
    return SamplerGap(
        gap=(difference.abs() * weight).sum(),
        gap_max=(difference.abs() * (weight > 0)).max(),
        ratio=(ratio * weight).sum(),
        squared_ratio=(ratio.square() * weight).sum(),
        truncated_share=((ratio > cap) * weight).sum() if cap else torch.zeros(()),
    )
