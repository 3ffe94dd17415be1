"""Running candidates so that neither luck, nor order, nor a look at what is asked decides what counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from codea1_env.facts.outcomes import OutcomeKind
from codea1_env.rules.confirmation import agreed, is_confirmed
from codea1_env.rules.ruleset import Comparison
from codea1_env.sandbox.interface import Job, JobReport, Sandbox


def run_candidates(
    jobs: Sequence[Job], others: Sequence[Job], sandbox: Sandbox, *, confirm: float, comparison: Comparison
) -> list[JobReport]:
    """Return a report per candidate's job and then one per other job, all run together.

    Args:
        jobs: one per candidate, with all that is asked of it.
        others: run as they are.
        sandbox: where.
        confirm: share of candidates that run twice, the second time in reverse order; both runs must agree.
        comparison: when they agree.

    Raises:
        SandboxError: the sandbox cannot be used at all.
    """
    twice = [position for position, job in enumerate(jobs) if job.calls and is_confirmed(job.program, confirm)]
    reversed_jobs = [replace(jobs[position], calls=jobs[position].calls[::-1]) for position in twice]
    reports = sandbox.run([*jobs, *others, *reversed_jobs])
    n_once = len(jobs) + len(others)
    found = _loaded(jobs, reports[: len(jobs)], sandbox)
    second = _loaded(reversed_jobs, reports[n_once:], sandbox)
    for position, report in zip(twice, second, strict=True):
        found[position] = _both(found[position], report, comparison)
    return [*found, *reports[len(jobs) : n_once]]


def _both(first: JobReport, reverse: JobReport, comparison: Comparison) -> JobReport:
    """Return what two runs, the second in reverse order, say together."""
    if not (first.loaded and reverse.loaded):
        return first if reverse.loaded else replace(first, load=reverse.load, outcomes=reverse.outcomes[::-1])
    pairs = zip(first.outcomes, reversed(reverse.outcomes), strict=True)
    outcomes = tuple(agreed(one, other, comparison) for one, other in pairs)
    return replace(first, outcomes=outcomes, cpu_s=first.cpu_s + reverse.cpu_s)


def _loaded(jobs: Sequence[Job], reports: Sequence[JobReport], sandbox: Sandbox) -> list[JobReport]:
    """Return reports in which a program that loads only while nothing is asked of it has failed what was asked.

    Otherwise a candidate could pass for one that does not load wherever it expects to lose.
    """
    found = list(reports)
    faults = [
        position
        for position, report in enumerate(reports)
        if jobs[position].calls and not report.loaded and report.load.kind is not OutcomeKind.INTERNAL_ERROR
    ]
    alone = sandbox.run([replace(jobs[position], calls=()) for position in faults]) if faults else []
    for position, report in zip(faults, alone, strict=True):
        if report.loaded:
            fault = found[position].load
            found[position] = replace(
                found[position], load=report.load, outcomes=(fault,) * len(found[position].outcomes)
            )
    return found
