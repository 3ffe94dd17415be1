"""The processor time of a candidate, derived from the time that the solution used.

A fixed limit is too long for quick problems, where each endless loop uses all of it, and too short for slow ones.
Timings vary between runs. So the limit takes few values, each twice the one before, and the same solution gives the
same limit in nearly every run, on an idle and on a loaded machine.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Calibration:
    """How the limit of candidates follows from the solution's processor time."""

    factor: float = 10.0
    """A candidate may take at least this many times as long as the solution."""
    floor_s: float = 2.0
    """Shortest limit: shorter times mostly measure the load of the machine."""
    ceiling_s: float = 32.0
    """Longest limit."""

    def __post_init__(self) -> None:
        if self.factor < 1 or not 0 < self.floor_s <= self.ceiling_s:
            raise ValueError(f"factor must be at least 1 and 0 < floor_s <= ceiling_s, got {self}")


def calibrated_cpu_s(solution_s: float, calibration: Calibration | None = None) -> float:
    """Return the limit on processor seconds per call for the candidates of a problem.

    Args:
        solution_s: processor seconds that the solution used for the same call (`JobReport.call_s`).
        calibration: None: ten times as long, between 2 and 32 seconds.

    Returns:
        The floor times a power of two, at most the ceiling.

    Raises:
        ValueError: the time is negative or nan.
    """
    rule = calibration or Calibration()
    if not solution_s >= 0:
        raise ValueError(f"solution_s must be at least 0, got {solution_s}")
    limit = rule.floor_s
    while limit < rule.factor * solution_s and limit < rule.ceiling_s:
        limit *= 2
    return min(limit, rule.ceiling_s)
