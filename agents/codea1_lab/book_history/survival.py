"""The Kaplan-Meier estimate of how long cases stay in a Mistake Book. Pure.

A case that is still in the book, or that a full book evicted, is *censored*: its stay is at least as long as observed.
Intervals are Greenwood's on the scale log(-log S), which keeps them within [0, 1]; if S is 1 or 0 there is none.

Source: Kaplan and Meier (1958), JASA 53:457-481; Kalbfleisch and Prentice (2002), section 1.4; `scipy.stats.ecdf`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

import numpy as np

from codea1_env.errors import extra_needed

_ROUNDING = 1e-12  # bound of the error in products of shares


@dataclass(frozen=True, slots=True)
class Step:
    """The estimate after one time at which cases were fixed."""

    time: int
    n_at_risk: int
    """Number of cases that stayed at least until `time`."""
    n_fixed: int
    """Number of cases fixed at `time`."""
    share: float
    """Estimated share of cases that stay longer than `time`, in [0, 1]."""
    low: float
    """Lower end of the 95 % interval; nan: no interval."""
    high: float


@dataclass(frozen=True, slots=True)
class Survival:
    """The whole estimate."""

    n: int
    n_fixed: int
    steps: tuple[Step, ...]
    """In the order of time."""

    @property
    def median(self) -> float:
        """The first time after which at most half of the cases stay; nan: more than half stay."""
        return next((float(step.time) for step in self.steps if step.share <= 0.5 + _ROUNDING), nan)


def survival(durations: Sequence[int], is_fixed: Sequence[bool]) -> Survival:
    """Return the estimate.

    Args:
        durations: (N,) the observed stay of each case, at least 0.
        is_fixed: (N,) whether the stay ended because a program passed the case; False: censored.

    Raises:
        MissingExtra: scipy is not installed.
    """
    with extra_needed("survival in a Mistake Book", "study"):
        from scipy.stats import CensoredData, ecdf  # noqa: PLC0415  slow to import, and optional
    times, fixed = np.asarray(durations, dtype=np.intp), np.asarray(is_fixed, dtype=bool)
    if not len(times):
        return Survival(0, 0, ())
    share = ecdf(CensoredData(uncensored=times[fixed], right=times[~fixed])).sf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # shares without an interval
        interval = share.confidence_interval(method="log-log")
    columns = (share.quantiles, share.probabilities, interval.low.probabilities, interval.high.probabilities)
    steps = [
        Step(int(time), int(np.sum(times >= time)), int(n_fixed), float(mean), float(low), float(high))
        for time, mean, low, high in zip(*columns, strict=True)
        if (n_fixed := np.sum(times[fixed] == time))
    ]
    return Survival(len(times), int(fixed.sum()), tuple(steps))
