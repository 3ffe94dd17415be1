"""Muon in float32 goes where PyTorch's goes, but for the rounding of bfloat16."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from codea1_agents.train.tiny.muon import Muon, orthogonal  # noqa: E402


def parameters() -> list[torch.nn.Parameter]:
    draws = torch.Generator().manual_seed(3)
    shapes = [(12, 30), (12, 30), (40, 16), (8, 8)]
    return [torch.nn.Parameter(torch.randn(shape, generator=draws)) for shape in shapes]


def test_steps_are_those_of_torch_but_for_rounding() -> None:
    ours, theirs = parameters(), parameters()
    one = Muon(ours, lr=0.02)
    other = torch.optim.Muon(theirs, lr=0.02, weight_decay=0.0)
    draws = torch.Generator().manual_seed(4)
    for _ in range(5):
        for mine, yours in zip(ours, theirs, strict=True):
            mine.grad = torch.randn(mine.shape, generator=draws)
            yours.grad = mine.grad.clone()
        one.step()
        other.step()
    for before, mine, yours in zip(parameters(), ours, theirs, strict=True):
        moved = float((yours - before).detach().norm())
        assert moved > 0.05
        assert float((mine - yours).detach().norm()) < 0.02 * moved


def test_a_direction_has_singular_values_near_one_and_the_same_singular_vectors() -> None:
    matrices = torch.randn(2, 10, 24, generator=torch.Generator().manual_seed(5))
    found = orthogonal(matrices)
    assert torch.linalg.svdvals(found).min() > 0.6
    assert torch.linalg.svdvals(found).max() < 1.3
    left, _, right = torch.linalg.svd(matrices, full_matrices=False)
    core = left.mT @ found @ right.mT
    assert torch.allclose(core, torch.diag_embed(core.diagonal(dim1=-2, dim2=-1)), atol=1e-4)


def test_the_learning_rate_is_that_of_the_group() -> None:
    (one,) = [torch.nn.Parameter(torch.zeros(4, 4))]
    muon = Muon([one], lr=0.5)
    muon.param_groups[0]["lr"] = 0.0
    one.grad = torch.ones(4, 4)
    muon.step()
    assert not one.any()
