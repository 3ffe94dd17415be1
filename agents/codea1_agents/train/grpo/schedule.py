"""The learning rate over a run: linear warm-up, then constant or a cosine down to zero (method.md 1.9)."""

from __future__ import annotations

import math


def lr_factor(step: int, *, warmup_steps: int, total_steps: int | None) -> float:
    """Return what the learning rate is multiplied by, in [0, 1].

    Args:
        step: number of the iteration, from 0.
        warmup_steps: the first of which gets 1/warmup_steps, the last all.
        total_steps: after which it is zero; None: it stays.
    """
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    if total_steps is None:
        return 1.0
    progress = (step - warmup_steps) / max(1, total_steps - warmup_steps)
    return 0.5 * (1.0 + math.cos(math.pi * min(progress, 1.0)))
