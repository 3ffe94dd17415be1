"""Means over cells, and paired differences, with their uncertainty. Pure.

Cells (seed x base) are the replicates; the problems are the same in all cells. Intervals are Student's t over cells, so
they estimate what other seeds would give. Cells of one base are not independent of each other. With few bases, the
intervals are too narrow as statements about other bases, so every table also has the mean of each base.

Source: e.g. Colas, Sigaud and Oudeyer, How Many Random Seeds? (2018), on t intervals over seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import isnan, nan, sqrt
from statistics import fmean, stdev

from codea1_lab.experiments.grid import Cell

_LEAST = 3  # cells or pairs: an interval of two is not evidence


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure over the cells of one system; nan if no cell has it."""

    mean: float
    half_width: float
    """Half of the 95 % interval over cells; nan below three cells."""
    low: float
    """Value of the lowest cell."""
    high: float
    """Value of the highest cell."""
    n: int
    by_base: tuple[float, ...]
    """Mean over the cells of each base."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two systems, cell by cell; nan without a common cell."""

    mean: float
    half_width: float
    """Half of the 95 % interval; nan below three pairs."""
    n: int
    n_larger: int
    """Pairs in which the first system has the larger value."""
    n_smaller: int
    """Pairs in which it has the smaller one."""
    p: float
    """p value of the paired t test that the mean is 0; nan below three pairs, and if all pairs differ equally."""

    @property
    def is_shown(self) -> bool:
        """Whether the interval excludes 0."""
        return not isnan(self.half_width) and abs(self.mean) > self.half_width


def spread_of(values: Mapping[Cell, float]) -> Spread:
    """Return the spread of a system's figure, without cells whose value is nan."""
    known = {cell: value for cell, value in values.items() if not isnan(value)}
    numbers = list(known.values())
    if not numbers:
        return Spread(nan, nan, nan, nan, 0, ())
    bases = sorted({cell.base for cell in known})
    by_base = tuple(fmean(value for cell, value in known.items() if cell.base == base) for base in bases)
    return Spread(fmean(numbers), _half_width(numbers), min(numbers), max(numbers), len(numbers), by_base)


def paired_difference(
    first: Mapping[Cell, float], second: Mapping[Cell, float], *, over_bases: bool = False
) -> Difference:
    """Return `first` minus `second`, over the pairs (base, seed) that both have.

    Args:
        first: values of one system.
        second: values of another one.
        over_bases: whether the mean over the pairs of a base counts as one pair, since they are not independent.
    """
    one, other = _by_base_and_seed(first), _by_base_and_seed(second)
    by_base: dict[int, list[float]] = {}
    for base, seed in sorted(one.keys() & other.keys()):
        by_base.setdefault(base, []).append(one[base, seed] - other[base, seed])
    differences = [fmean(each) for each in by_base.values()] if over_bases else [*chain(*by_base.values())]
    if not differences:
        return Difference(nan, nan, 0, 0, 0, nan)
    n_larger, n_smaller = sum(number > 0 for number in differences), sum(number < 0 for number in differences)
    mean, half_width, n = fmean(differences), _half_width(differences), len(differences)
    p = p_of_interval(mean, half_width, n) if any(differences) or n < _LEAST else 1.0
    return Difference(mean, half_width, n, n_larger, n_smaller, p)


def p_of_interval(mean: float, half_width: float, n: int, *, margin: float = 0.0) -> float:
    """Return the p value that belongs to a mean and half of its 95 % interval (Student's t); nan below three values.

    Args:
        mean: of the differences.
        half_width: of their interval.
        n: number of differences.
        margin: 0: p of a mean of 0, two-sided. Above 0: that the mean lies outside of ± margin (TOST: the larger of the
            two one-sided p values), so a low one shows equivalence.
    """
    if n < _LEAST or isnan(half_width):
        return nan
    from scipy.stats import t  # noqa: PLC0415  heavy

    error = half_width / float(t.ppf(0.975, n - 1))
    if not error:
        return float(abs(mean) >= margin) if margin else nan
    distance = (abs(mean) - margin) / error
    return float(t.cdf(distance, n - 1)) if margin else float(2 * t.sf(distance, n - 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p values that are corrected for being several, in order (Holm, 1979). nan counts as 1 and stays nan.

    Args:
        p_values: all tests of one family.
    """
    order = sorted(range(len(p_values)), key=lambda i: 1.0 if isnan(p_values[i]) else p_values[i])
    corrected, least = [nan] * len(p_values), 0.0
    for rank, i in enumerate(order):
        if not isnan(p_values[i]):
            least = max(least, min(1.0, (len(p_values) - rank) * p_values[i]))
            corrected[i] = least
    return corrected


def _by_base_and_seed(values: Mapping[Cell, float]) -> dict[tuple[int, int], float]:
    return {(cell.base, cell.seed): value for cell, value in values.items() if not isnan(value)}


def _half_width(numbers: Sequence[float]) -> float:
    if len(numbers) < _LEAST:
        return nan
    from scipy.stats import t  # noqa: PLC0415  heavy

    return float(t.ppf(0.975, len(numbers) - 1)) * stdev(numbers) / sqrt(len(numbers))
