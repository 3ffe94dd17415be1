"""Kaplan-Meier: how long cases stay in a Mistake Book, when for some only a lower bound is known. Pure.

A case that is still there, or that a full book pushed out, is *censored*: it would have stayed at least as long. The
estimate of the share that stays longer than t is the product over the times of fixes up to t of
1 - (fixes then) / (cases that had stayed so long). Its interval is Greenwood's, on the scale log(-log S), which keeps
it within [0, 1]; where S is 1 or 0 there is none.

Source: Kaplan and Meier (1958), JASA 53:457-481; Kalbfleisch and Prentice (2002), section 1.4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, log, nan, sqrt

_Z = 1.959963984540054  # two-sided 95 %


@dataclass(frozen=True, slots=True)
class Stay:
    """How long one case stayed, and whether that was its end."""

    duration: int
    """At least 0."""
    is_fixed: bool
    """False: censored, it would have stayed at least so long."""


@dataclass(frozen=True, slots=True)
class Step:
    """The estimate after one time at which cases were fixed."""

    time: int
    n_at_risk: int
    """Cases that had stayed so long."""
    n_fixed: int
    share: float
    """That stays longer than `time`, in [0, 1]."""
    low: float
    """Lower end of the 95 % interval; nan where there is none."""
    high: float


@dataclass(frozen=True, slots=True)
class Survival:
    """The whole estimate."""

    n: int
    n_fixed: int
    steps: tuple[Step, ...]
    """By time."""

    @property
    def median(self) -> float:
        """Least time after which at most half of the cases stay; nan if that was not reached."""
        return next((float(step.time) for step in self.steps if step.share <= 0.5), nan)

    def share_after(self, time: float) -> float:
        """Return the share of cases that stays longer than `time`."""
        return next((step.share for step in reversed(self.steps) if step.time <= time), 1.0)


def survival(stays: Iterable[Stay]) -> Survival:
    """Return the estimate for these stays.

    Raises:
        ValueError: a negative duration.
    """
    fixed: Counter[int] = Counter()
    censored: Counter[int] = Counter()
    for stay in stays:
        if stay.duration < 0:
            raise ValueError(f"a case cannot stay {stay.duration} rounds")
        (fixed if stay.is_fixed else censored)[stay.duration] += 1
    n = at_risk = fixed.total() + censored.total()
    share, variance, steps = 1.0, 0.0, []
    for time in sorted(fixed.keys() | censored.keys()):
        events = fixed[time]
        if events:
            share *= 1 - events / at_risk
            # With the last case fixed the variance is not defined; the interval then is not, either.
            variance += events / (at_risk * (at_risk - events)) if at_risk > events else nan
            steps.append(Step(time, at_risk, events, share, *_interval(share, variance)))
        at_risk -= events + censored[time]
    return Survival(n, fixed.total(), tuple(steps))


def _interval(share: float, variance: float) -> tuple[float, float]:
    if not 0 < share < 1:
        return nan, nan
    spread = _Z * sqrt(variance) / abs(log(share))
    return share ** exp(spread), share ** exp(-spread)
