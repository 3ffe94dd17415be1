"""The processor time of a candidate, derived from the time that the solution used.

A fixed limit is too long for quick problems, where each endless loop uses all of it, and too short for slow ones.
Timings vary between runs. So the limit takes few values, each twice the one before, and the same solution gives the
same limit in nearly every run, on an idle and on a loaded machine.
"""

from __future__ import annotations

FACTOR = 10.0
"""A candidate may take at least this many times as long as the solution."""


def calibrated_cpu_s(solution_s: float, *, floor_s: float, ceiling_s: float) -> float:
    """Return the limit on processor seconds per call for the candidates of a problem.

    Args:
        solution_s: processor seconds that the solution used for the same call (`JobReport.call_s`).
        floor_s: shortest limit, above 0: shorter times mostly measure the load of the machine.
        ceiling_s: longest limit, at least the shortest.

    Returns:
        The floor times a power of two, at most the ceiling.

    Raises:
        ValueError: the time is negative or nan.
    """
    if not solution_s >= 0:
        raise ValueError(f"solution_s must be at least 0, got {solution_s}")
    limit = floor_s
    while limit < FACTOR * solution_s and limit < ceiling_s:
        limit *= 2
    return min(limit, ceiling_s)
