"""Means over cells, and paired differences, with what may be said about their uncertainty. Pure.

Cells (seed x base) are the replicates: the problems are the same everywhere. Intervals are Student's t over cells, so
they say what another seed would give. Seeds that share a base share its luck: with few bases the intervals are too
narrow as statements about other bases, which is why every table also tells the spread over the bases' own means.

Source: e.g. Colas, Sigaud and Oudeyer, How Many Random Seeds? (2018), on t intervals over seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan, sqrt
from statistics import fmean, stdev

from codea1_agents.train.experiments.grid import Cell


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure over the cells of one system; nan where there is none."""

    mean: float
    half_width: float
    """Of the 95 % interval over cells; nan below two."""
    low: float
    """Smallest cell."""
    high: float
    """Largest cell."""
    n: int
    by_base: tuple[float, ...]
    """Mean of each base's cells."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A system less another, cell by cell; nan where there is none."""

    mean: float
    half_width: float
    """Of the 95 % interval; nan below two pairs."""
    n: int
    n_larger: int
    """Pairs in which the first system is ahead."""

    @property
    def is_shown(self) -> bool:
        """Whether the interval leaves 0 out."""
        return not isnan(self.half_width) and abs(self.mean) > self.half_width


def spread_of(values: Mapping[Cell, float]) -> Spread:
    """Return the spread of one system's figure; cells whose value is nan are left out."""
    known = {cell: value for cell, value in values.items() if not isnan(value)}
    numbers = list(known.values())
    if not numbers:
        return Spread(nan, nan, nan, nan, 0, ())
    bases = sorted({cell.base for cell in known})
    by_base = tuple(fmean(value for cell, value in known.items() if cell.base == base) for base in bases)
    return Spread(fmean(numbers), _half_width(numbers), min(numbers), max(numbers), len(numbers), by_base)


def paired(first: Mapping[Cell, float], second: Mapping[Cell, float]) -> Difference:
    """Return `first` less `second` over the (base, seed) that both have."""
    mine, theirs = _by_place(first), _by_place(second)
    differences = [mine[place] - theirs[place] for place in sorted(mine.keys() & theirs.keys())]
    if not differences:
        return Difference(nan, nan, 0, 0)
    return Difference(fmean(differences), _half_width(differences), len(differences), sum(d > 0 for d in differences))


def _by_place(values: Mapping[Cell, float]) -> dict[tuple[int, int], float]:
    return {(cell.base, cell.seed): value for cell, value in values.items() if not isnan(value)}


def _half_width(numbers: Sequence[float]) -> float:
    if len(numbers) < 2:
        return nan
    from scipy.stats import t  # noqa: PLC0415  heavy

    return float(t.ppf(0.975, len(numbers) - 1)) * stdev(numbers) / sqrt(len(numbers))
