"""How much processor time a candidate gets, given what the solution used: as little as is fair, as stable as can be.

A fixed limit is too long for quick problems, where each endless loop costs all of it, and too short for slow ones.
Timings are never the same twice, so the limit takes few values, each twice the one before: the same solution gives the
same limit in nearly every run, on an idle and on a loaded machine.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Calibration:
    """From the solution's processor time to the limit of candidates."""

    factor: float = 10.0
    """How many times as long as the solution a candidate may take, at least."""
    floor_s: float = 2.0
    """Shortest limit: below it, what is measured is the machine's mood."""
    ceiling_s: float = 32.0
    """Longest limit."""

    def __post_init__(self) -> None:
        if self.factor < 1 or not 0 < self.floor_s <= self.ceiling_s:
            raise ValueError(f"a limit must lie between a floor above 0 and a ceiling, and above one time: {self}")


def calibrated_cpu_s(solution_s: float, calibration: Calibration | None = None) -> float:
    """Return the limit on processor seconds per call for the candidates of a problem.

    Args:
        solution_s: processor seconds that the solution used for the same call (`JobReport.call_s`).
        calibration: by default ten times as long, between 2 and 32 seconds.

    Returns:
        The floor times a power of two, at most the ceiling.

    Raises:
        ValueError: a negative time, or none at all (nan).
    """
    rule = calibration or Calibration()
    if not solution_s >= 0:
        raise ValueError(f"processor time cannot be {solution_s}")
    limit = rule.floor_s
    while limit < rule.factor * solution_s and limit < rule.ceiling_s:
        limit *= 2
    return min(limit, rule.ceiling_s)
