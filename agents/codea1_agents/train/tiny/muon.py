"""Muon in float32: steps of hidden matrices along orthogonal directions (Keller Jordan's post of December 2024).

PyTorch's own computes the Newton-Schulz iteration in bfloat16, which a processor without instructions for it emulates:
there it takes twenty times as long as in float32, and most of a pretraining. Matrices of one shape are computed at
once. The directions differ from PyTorch's by the rounding of bfloat16 only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

_MOMENTUM = 0.95
_A, _B, _C = 3.4445, -4.7750, 2.0315  # of the quintic iteration, chosen for its slope at zero
_ITERATIONS = 5


class Muon:
    """Muon with Nesterov momentum and without weight decay, with PyTorch's defaults."""

    def __init__(self, matrices: Sequence[Tensor], lr: float) -> None:
        shapes: dict[torch.Size, list[Tensor]] = {}
        for matrix in matrices:
            shapes.setdefault(matrix.shape, []).append(matrix)
        self._alike = [(of_shape, [torch.zeros_like(each) for each in of_shape]) for of_shape in shapes.values()]
        self.param_groups = [{"lr": lr}]

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step(self) -> None:
        """Change the matrices by their gradients."""
        for matrices, momenta in self._alike:
            gradients = torch.stack([each.grad for each in matrices])
            torch._foreach_lerp_(momenta, list(gradients), 1 - _MOMENTUM)
            directions = orthogonal(gradients.lerp(torch.stack(momenta), _MOMENTUM))
            rows, columns = matrices[0].shape
            rate = self.param_groups[0]["lr"] * math.sqrt(max(1, rows / columns))
            torch._foreach_add_(matrices, list(directions), alpha=-rate)


def orthogonal(matrices: Tensor) -> Tensor:
    """Return matrices (n, rows, columns) with the same singular vectors and singular values near 1."""
    is_tall = matrices.shape[-2] > matrices.shape[-1]
    found = matrices.mT if is_tall else matrices
    found = found / found.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    for _ in range(_ITERATIONS):
        gram = found @ found.mT
        found = torch.baddbmm(found, torch.baddbmm(gram, gram, gram, beta=_B, alpha=_C), found, beta=_A)
    return found.mT if is_tall else found
