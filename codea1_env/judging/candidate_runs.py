"""Run candidates so that neither chance, nor the order of calls, nor knowledge of the calls decides a verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeVar

from codea1_env.facts.outcomes import OutcomeKind
from codea1_env.judging.right_answers import AnsweredCalls, accept_right_answers
from codea1_env.rules.confirmation import combined_outcome, drawn_order, is_confirmed
from codea1_env.rules.ruleset import Comparison, Ruleset
from codea1_env.sandbox.interface import Job, JobReport, Limits, Sandbox

_T = TypeVar("_T")


def run_candidates(
    jobs: Sequence[Job],
    others: Sequence[Job],
    answered: Sequence[Callable[[JobReport], AnsweredCalls]],
    sandbox: Sandbox,
    limits: Limits,
    rules: Ruleset,
) -> list[JobReport]:
    """Run all jobs together; return a report per candidate's job, then one per other job.

    Args:
        jobs: one per candidate, with all of its calls.
        others: further jobs, which run once.
        answered: one per candidate: pairs the answers in a report with the solution's. Other right ones are replaced
            by them (`right_answers`) before the reports of two runs are combined.
        sandbox: where all of them run.
        limits: what a checker may use per answer.
        rules: which share of the candidates runs twice (`confirm`), the second time in a drawn order (`draws_order`) or
            else in reverse; and when two values agree.

    Raises:
        SandboxError: the sandbox cannot be used at all.
    """
    twice = [position for position, job in enumerate(jobs) if job.calls and is_confirmed(job.program, rules.confirm)]
    again = [_Ordered.of(jobs[position], rules.draws_order) for position in twice]
    second_jobs = [each.job for each in again]
    reports = sandbox.run([*jobs, *others, *second_jobs])
    n_once = len(jobs) + len(others)
    loaded = _loaded([*jobs, *second_jobs], [*reports[: len(jobs)], *reports[n_once:]], sandbox)
    in_place = loaded[: len(jobs)] + [e.in_place(r) for e, r in zip(again, loaded[len(jobs) :], strict=True)]
    positions = (*range(len(jobs)), *twice)
    answers = [answered[position](report) for position, report in zip(positions, in_place, strict=True)]
    accepted = accept_right_answers(answers, sandbox, limits, rules.comparison)
    found, second = accepted[: len(jobs)], accepted[len(jobs) :]
    for position, report in zip(twice, second, strict=True):
        found[position] = _both(found[position], report, rules.comparison)
    return [*found, *reports[len(jobs) : n_once]]


@dataclass(frozen=True, slots=True)
class _Ordered:
    """A job with its calls in the order of a second run."""

    job: Job
    order: tuple[int, ...]
    """(n,) positions of its calls among those of the original job."""

    @classmethod
    def of(cls, job: Job, is_drawn: bool) -> Self:
        order = tuple(range(len(job.calls)))[::-1]
        if is_drawn:
            order = drawn_order(job.program, [call.expression for call in job.calls], 1)
        return cls(replace(job, calls=tuple(job.calls[position] for position in order)), order)

    def in_place(self, report: JobReport) -> JobReport:
        """Return a report on the job with everything in the order of the original job's calls."""

        places = sorted(range(len(self.order)), key=self.order.__getitem__)

        def restored(items: tuple[_T, ...]) -> tuple[_T, ...]:
            return tuple(map(items.__getitem__, places)) if len(items) == len(places) else items

        return replace(
            report,
            outcomes=restored(report.outcomes),
            call_s=restored(report.call_s),
            entry_point_calls=restored(report.entry_point_calls),
        )


def _both(first: JobReport, second: JobReport, comparison: Comparison) -> JobReport:
    """Combine the reports of two runs."""
    if not (first.loaded and second.loaded):
        return first if second.loaded else replace(first, load=second.load, outcomes=second.outcomes)
    pairs = zip(first.outcomes, second.outcomes, strict=True)
    outcomes = tuple(combined_outcome(one, other, comparison) for one, other in pairs)
    return replace(first, outcomes=outcomes, cpu_s=first.cpu_s + second.cpu_s)


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
