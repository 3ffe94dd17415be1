"""How long a program may take for golden tests: as long as follows from the solution's time, as for other tests.

Most programs and solutions answer within milliseconds, and an endless loop uses its whole limit. So every program runs
under short limits first. Only for a program that exceeds them the solution runs the same tests, once per problem, and
the program runs again if the solution's time allows it more. A program that hung twice is not asked again: the tests
that it was not asked have failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from codea1_env.facts.outcomes import OutcomeKind
from codea1_env.judging.golden import GOLDEN_LIMITS, GoldenRun, golden_jobs
from codea1_env.problems.problem import Problem
from codea1_env.rules.limits import Calibration, calibrated_cpu_s
from codea1_env.sandbox.interface import SLEPT, Job, JobReport, Limits, Sandbox

SHORT = replace(GOLDEN_LIMITS, cpu_s=2.0, wall_s=3.0, job_factor=16.0)
"""Of the first run. Two calls that hang cost twice as much, and a second run what the solution's time allows."""


class GoldenTime:
    """Runs programs again whose solution takes longer than the short limits. Thread-safe; knows each problem once."""

    def __init__(self, sandbox: Sandbox, most: Limits = GOLDEN_LIMITS) -> None:
        self._sandbox = sandbox
        self._most = most
        self._known: dict[str, tuple[Limits, ...]] = {}

    def given(self, runs: Sequence[GoldenRun]) -> list[GoldenRun]:
        """Return the runs, where a job that exceeded its limits has run again if the solution takes long, too.

        Raises:
            SandboxError: the sandbox cannot be used at all.
        """
        late = [(n, k) for n, run in enumerate(runs) for k, report in enumerate(run.reports) if _is_late(report)]
        self._measure({runs[n].problem.id: runs[n].problem for n, _ in late})
        again: list[tuple[int, int, Job]] = []
        for n, k in late:
            job, limits = runs[n].jobs[k], self._known[runs[n].problem.id][k]
            if limits.cpu_s > job.limits.cpu_s or limits.wall_s > job.limits.wall_s:
                allowed = replace(job.limits, cpu_s=limits.cpu_s, wall_s=limits.wall_s, job_factor=limits.job_factor)
                again.append((n, k, replace(job, limits=allowed)))
        reports = self._sandbox.run([job for *_, job in again]) if again else []
        found = list(runs)
        for (n, k, _), report in zip(again, reports, strict=True):
            known = list(found[n].reports)
            known[k] = report
            found[n] = replace(found[n], reports=tuple(known))
        return found

    def _measure(self, problems: dict[str, Problem]) -> None:
        unknown = [problem for name, problem in problems.items() if name not in self._known]
        jobs = [golden_jobs(each, each.solution, replace(self._most, wall_s=SHORT.wall_s)) for each in unknown]
        reports = iter(self._sandbox.run([job for of_one in jobs for job in of_one]) if jobs else ())
        for problem, of_one in zip(unknown, jobs, strict=True):
            self._known[problem.id] = tuple(self._allowed(next(reports)) for _ in of_one)

    def _allowed(self, report: JobReport) -> Limits:
        """Return the limits that follow from the solution's run of one job."""
        rule = Calibration(floor_s=SHORT.cpu_s, ceiling_s=max(SHORT.cpu_s, self._most.cpu_s))
        cpu_s = calibrated_cpu_s(max(report.call_s, default=0.0), rule)
        sleeps = any(outcome.error_type == SLEPT for outcome in (report.load, *report.outcomes))
        factor = SHORT.job_factor if cpu_s == SHORT.cpu_s else self._most.job_factor
        return replace(SHORT, cpu_s=cpu_s, wall_s=self._most.wall_s if sleeps else SHORT.wall_s, job_factor=factor)


def _is_late(report: JobReport) -> bool:
    if not report.loaded:
        return report.load.kind is OutcomeKind.TIME_LIMIT
    return any(outcome.kind in (OutcomeKind.TIME_LIMIT, OutcomeKind.NOT_RUN) for outcome in report.outcomes)
