"""Advantages by parts, computed one group, one part and one number at a time."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence


def z(numbers: Sequence[float]) -> list[float]:
    """One group's distances from its mean, in sample deviations; nan stays out and gets 0."""
    known = [x for x in numbers if not math.isnan(x)]
    std = statistics.stdev(known) if len(known) > 1 else 0.0
    if std < 1e-8:
        return [0.0] * len(numbers)
    return [0.0 if math.isnan(x) else (x - statistics.mean(known)) / (std + 1e-6) for x in numbers]


def by_hand(
    columns: Mapping[str, Sequence[float]], weights: Mapping[str, float], form: str, valid_from: float
) -> list[float]:
    """The advantages of one group, whose rewards have the parts `columns`."""
    if form == "sum":
        return z([sum(weights[name] * x for name, x in row) for row in _rows(columns)])
    compared = dict(columns)
    if form == "conditioned":
        pairs = zip(columns["adversarial"], columns["validity"], strict=True)
        compared["adversarial"] = [x if validity >= valid_from else math.nan for x, validity in pairs]
    terms = {name: z(column) for name, column in compared.items()}
    return [sum(weights[name] * x for name, x in row) for row in _rows(terms)]


def _rows(columns: Mapping[str, Sequence[float]]) -> list[list[tuple[str, float]]]:
    return [list(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
