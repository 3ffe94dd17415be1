"""Run candidates so that neither chance, nor the order of calls, nor knowledge of the calls decides a verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from codea1_env.facts.outcomes import OutcomeKind
from codea1_env.rules.confirmation import combined_outcome, is_confirmed
from codea1_env.rules.ruleset import Comparison
from codea1_env.sandbox.interface import Job, JobReport, Sandbox


@dataclass(frozen=True, slots=True)
class CandidateRun:
    """One run of one candidate."""

    position: int
    """Of the candidate's job in `jobs`."""
    report: JobReport
    is_reversed: bool = False
    """Whether it is the second run, with the calls in reverse order."""


Accept: TypeAlias = Callable[[Sequence[CandidateRun]], list[JobReport]]
"""Returns the report of each run with the solution's answer in place of other right ones (`right_answers`)."""


def run_candidates(
    jobs: Sequence[Job],
    others: Sequence[Job],
    sandbox: Sandbox,
    accept: Accept,
    *,
    confirm: float,
    comparison: Comparison,
) -> list[JobReport]:
    """Run all jobs together; return a report per candidate's job, then one per other job.

    Args:
        jobs: one per candidate, with all of its calls.
        others: further jobs, which run once.
        sandbox: where all of them run.
        accept: applied to the reports of the candidates, before those of two runs are combined.
        confirm: share of candidates that run twice, the second time in reverse order; both runs must agree.
        comparison: when two values agree.

    Raises:
        SandboxError: the sandbox cannot be used at all.
    """
    twice = [position for position, job in enumerate(jobs) if job.calls and is_confirmed(job.program, confirm)]
    reversed_jobs = [replace(jobs[position], calls=jobs[position].calls[::-1]) for position in twice]
    reports = sandbox.run([*jobs, *others, *reversed_jobs])
    n_once = len(jobs) + len(others)
    first = _loaded(jobs, reports[: len(jobs)], sandbox)
    again = _loaded(reversed_jobs, reports[n_once:], sandbox)
    runs = [CandidateRun(position, report) for position, report in enumerate(first)]
    runs += [CandidateRun(position, report, is_reversed=True) for position, report in zip(twice, again, strict=True)]
    accepted = accept(runs)
    found, second = accepted[: len(jobs)], accepted[len(jobs) :]
    for position, report in zip(twice, second, strict=True):
        found[position] = _both(found[position], report, comparison)
    return [*found, *reports[len(jobs) : n_once]]


def _both(first: JobReport, reverse: JobReport, comparison: Comparison) -> JobReport:
    """Combine the reports of two runs, the second in reverse order."""
    if not (first.loaded and reverse.loaded):
        return first if reverse.loaded else replace(first, load=reverse.load, outcomes=reverse.outcomes[::-1])
    pairs = zip(first.outcomes, reversed(reverse.outcomes), strict=True)
    outcomes = tuple(combined_outcome(one, other, comparison) for one, other in pairs)
    return replace(first, outcomes=outcomes, cpu_s=first.cpu_s + reverse.cpu_s)


def _loaded(jobs: Sequence[Job], reports: Sequence[JobReport], sandbox: Sandbox) -> list[JobReport]:
    """Return the reports, where a program that loads only without calls has failed its calls.

    Otherwise a candidate could pose as one that does not load whenever it expects to fail.
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
            failure = found[position].load
            found[position] = replace(
                found[position], load=report.load, outcomes=(failure,) * len(found[position].outcomes)
            )
    return found
