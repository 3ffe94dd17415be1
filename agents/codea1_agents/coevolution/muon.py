"""Muon: momentum whose matrix is made orthogonal before it is applied, for the hidden matrices of a network.

Source: K. Jordan, "Muon: an optimizer for hidden layers in neural networks" (2024), with its constants.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

_A, _B, _C = 3.4445, -4.7750, 2.0315
_STEPS = 5
_TINY = 1e-7


class Muon:
    """Steps matrices; those of one shape together.

    Args:
        parameters: matrices.
        momentum: in [0, 1).
    """

    def __init__(self, parameters: Iterable[Tensor], momentum: float = 0.95) -> None:
        groups: dict[tuple[int, ...], list[Tensor]] = defaultdict(list)
        for parameter in parameters:
            groups[tuple(parameter.shape)].append(parameter)
        self._groups = list(groups.values())
        self._averages = [torch.zeros(len(group), *group[0].shape, device=group[0].device) for group in self._groups]
        self._momentum = momentum

    def step(self, lr: float) -> None:
        """Apply the gradients with one learning rate: the size of a step as a share of an orthogonal matrix."""
        with torch.no_grad():
            for group, average in zip(self._groups, self._averages, strict=True):
                self._step(group, average, lr)

    def _step(self, group: Sequence[Tensor], average: Tensor, lr: float) -> None:
        gradient = torch.stack([parameter.grad.float() for parameter in group if parameter.grad is not None])
        average.lerp_(gradient, 1 - self._momentum)
        direction = orthogonal(gradient.lerp(average, self._momentum))  # Nesterov's
        rows, columns = direction.shape[-2:]
        scale = max(1.0, rows / columns) ** 0.5
        for parameter, change in zip(group, direction, strict=True):
            parameter.add_(change.to(parameter.dtype), alpha=-lr * scale)


def orthogonal(matrices: Tensor) -> Tensor:
    """Return roughly the nearest semi-orthogonal matrices (N, R, C): singular values end within about [0.7, 1.2]."""
    is_tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if is_tall else matrices
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + _TINY)
    for _ in range(_STEPS):
        gram = x @ x.mT
        x = _A * x + (_B * gram + _C * gram @ gram) @ x
    return x.mT if is_tall else x
