"""The learning rate over a run: linear warm-up, then constant or a cosine down to zero (the paper's schedule)."""

from __future__ import annotations

import math


def lr_factor(step: int, *, warmup_steps: int, total_steps: int | None) -> float:
    """Return the factor of the learning rate, in [0, 1].

    Args:
        step: number of the iteration, from 0.
        warmup_steps: iterations of the warm-up; the first has the factor 1/warmup_steps, the last 1.
        total_steps: iterations after which the factor is 0; None: it stays 1.
    """
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    if total_steps is None:
        return 1.0
    progress = (step - warmup_steps) / max(1, total_steps - warmup_steps)
    return 0.5 * (1.0 + math.cos(math.pi * min(progress, 1.0)))
