"""The loss, against a scalar computation that shares no code with it."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from codea1_agents.train.grpo.hyperparameters import LossSettings  # noqa: E402
from codea1_agents.train.grpo.loss import grpo_loss  # noqa: E402

B, R = 5, 7


def batch(seed: int = 0, spread: float = 3.0) -> dict[str, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, R + 1, (B,), generator=draw)
    mask = torch.arange(R) < lengths.unsqueeze(-1)
    log_probs = -torch.rand(B, R, generator=draw) * spread
    return {
        "log_probs": log_probs,
        "old_log_probs": -torch.rand(B, R, generator=draw) * spread,
        "reference_log_probs": -torch.rand(B, R, generator=draw) * spread,
        "entropy": torch.rand(B, R, generator=draw),
        "advantages": torch.randn(B, R, generator=draw) * 2,
        "mask": mask,
        "token_weight": torch.full((B,), 1.0 / int(mask.sum())),
    }


def by_hand(data: dict[str, torch.Tensor], settings: LossSettings) -> float:
    total = 0.0
    for b in range(B):
        for r in range(R):
            if not data["mask"][b, r]:
                continue
            advantage = float(data["advantages"][b, r])
            ratio = math.exp(float(data["log_probs"][b, r]) - float(data["old_log_probs"][b, r]))
            clipped = min(max(ratio, 1 - settings.clip_low), 1 + settings.clip_high)
            gain = min(ratio * advantage, clipped * advantage)
            if advantage < 0:
                gain = max(gain, settings.dual_clip * advantage)
            d = float(data["reference_log_probs"][b, r]) - float(data["log_probs"][b, r])
            divergence = min(math.exp(d) - d - 1, 10.0)
            term = -gain + settings.kl_coeff * divergence - settings.entropy_coeff * float(data["entropy"][b, r])
            total += term * float(data["token_weight"][b])
    return total


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("settings", [LossSettings(), LossSettings(kl_coeff=0.5, entropy_coeff=0.1, dual_clip=1.5)])
def test_it_is_the_mean_over_tokens_of_the_clipped_gain(seed: int, settings: LossSettings) -> None:
    data = batch(seed)
    parts = grpo_loss(**data, settings=settings)
    assert float(parts.loss) == pytest.approx(by_hand(data, settings), rel=1e-5)
    assert 0 < float(parts.clip_share) < 1


def test_the_second_clip_bounds_the_loss_of_bad_tokens() -> None:
    data = batch()
    data["advantages"] = -data["advantages"].abs()
    data["old_log_probs"] = data["log_probs"] - 4.0  # ratio 54
    parts = grpo_loss(**data, settings=LossSettings(kl_coeff=0.0))
    assert float(parts.dual_clip_share) == pytest.approx(1.0)
    expected = float((10.0 * data["advantages"].abs() * data["mask"]).sum() / data["mask"].sum())
    assert float(parts.loss) == pytest.approx(expected, rel=1e-5)


def test_padding_says_nothing_whatever_it_holds() -> None:
    data = batch(1)
    expected = float(grpo_loss(**data, settings=LossSettings()).loss)
    for name in ("log_probs", "old_log_probs", "reference_log_probs", "entropy"):
        data[name] = torch.where(data["mask"], data[name], float("nan"))
    log_probs = data["log_probs"].clone().requires_grad_()
    loss = grpo_loss(**{**data, "log_probs": log_probs}, settings=LossSettings()).loss
    loss.backward()
    assert float(loss.detach()) == pytest.approx(expected)
    assert torch.isfinite(log_probs.grad).all()
    assert (log_probs.grad[~data["mask"]] == 0).all()
