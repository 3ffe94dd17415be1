"""The loop of supervised training: batches, their losses, an optimiser."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

from torch import Tensor

from codea1_env.errors import CodeA1Error


class _Batch(Protocol):
    """What one optimiser step trains on."""

    @property
    def n_targets(self) -> int:
        """Tokens with a loss."""


class Optimiser(Protocol):
    """Changes the weights of a model."""

    def step(self, number: int) -> None:
        """Apply and clear the gradients of a step, numbered from 0."""


_B = TypeVar("_B", bound=_Batch)


@dataclass(frozen=True, slots=True)
class StepLoss:
    """The loss of one optimiser step."""

    number: int
    """From 0."""
    summed: float
    """Mean over all tokens that are trained on, in nats."""
    n_tokens: int


class LossNotFinite(CodeA1Error, RuntimeError):
    """The loss of a step is not finite. The step changed nothing."""


def supervised_steps(
    batches: Iterable[_B], losses: Callable[[_B], Iterator[Tensor]], optimiser: Optimiser
) -> Iterator[StepLoss]:
    """Make one optimiser step per batch, and yield its loss. The loss is the mean over the tokens of the batch.

    Args:
        batches: one per step.
        losses: yields the losses of the tokens of a batch, part by part; each part is freed before the next one.
        optimiser: updates the model that computes the losses.

    Raises:
        LossNotFinite: a loss is nan or infinite.
    """
    for number, batch in enumerate(batches):
        summed = 0.0
        for part in losses(batch):
            total = part.sum()
            (total / batch.n_targets).backward()
            summed += float(total.detach())
        if not math.isfinite(summed):
            raise LossNotFinite(f"stopped: the loss of step {number + 1} is {summed}; a lower lr may help")
        optimiser.step(number)
        yield StepLoss(number, summed, batch.n_targets)
