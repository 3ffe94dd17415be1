"""Compares two evaluations problem by problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan

from codea1_agents.evaluation.metrics import n_problems_needed
from codea1_agents.statistics import Estimate, difference_interval, mean_interval


@dataclass(frozen=True, slots=True)
class PairedFigure:
    """One figure of two evaluations, on the problems that have it in both."""

    before: Estimate
    after: Estimate
    difference: Estimate
    """`after` - `before`, paired by problem. Judge a change by this interval, not by the intervals of the two means."""
    n_unpaired: int
    """Problems that have the figure in one evaluation only."""
    problems_needed: float
    """Number of problems that would show a difference of this size (power 0.8, level 0.05); inf if the difference is 0,
    nan below two problems."""

    @property
    def is_shown(self) -> bool:
        """Whether the difference's interval excludes 0."""
        return self.difference.low > 0 or self.difference.high < 0


def compare_figure(before: Mapping[str, float], after: Mapping[str, float], *, seed: int = 0) -> PairedFigure:
    """Return the paired comparison of one figure.

    Args:
        before: problem -> value; nan where the problem has none.
        after: likewise.
        seed: seeds the resampling behind the intervals.
    """
    known = [{problem: value for problem, value in each.items() if not isnan(value)} for each in (before, after)]
    both = sorted(known[0].keys() & known[1].keys())
    first, second = ({problem: [each[problem]] for problem in both} for each in known)
    return PairedFigure(
        before=mean_interval(first, seed=seed),
        after=mean_interval(second, seed=seed),
        difference=difference_interval(first, second, seed=seed),
        n_unpaired=len(known[0].keys() ^ known[1].keys()),
        problems_needed=n_problems_needed([second[problem][0] - first[problem][0] for problem in both]),
    )
