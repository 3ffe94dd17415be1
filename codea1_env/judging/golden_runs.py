"""Runs programs against golden tests, as long as follows from the solution's time, as for other tests.

Most programs and solutions answer within milliseconds, and an endless loop uses its whole limit. So every program runs
under short limits first. Only for a program that exceeds them the solution runs the same tests, once per problem, and
the program runs again if the solution's time allows it more. A program that hung twice is not asked again: the tests
that it was not asked have failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

from codea1_env.facts.verdicts import GoldenFinding, OutcomeKind, Verdict
from codea1_env.judging.golden import (
    GOLDEN_LIMITS,
    ExpectedValues,
    GoldenResult,
    GoldenRun,
    accept_golden_answers,
    golden_jobs,
    golden_pass_rate,
    golden_results,
)
from codea1_env.problems.problem import Problem
from codea1_env.rules.limits import Calibration, calibrated_cpu_s
from codea1_env.rules.ruleset import Comparison
from codea1_env.sandbox.interface import SLEPT, Job, JobReport, Limits, Sandbox

SHORT = replace(GOLDEN_LIMITS, cpu_s=2.0, wall_s=3.0, job_factor=16.0)
"""Time limit of the first run: low, since a program that hangs on two calls costs twice as much. A second run gets what
the solution's own time allows."""
PROGRAM_LIMITS = replace(SHORT, max_restarts=0)
"""A program has failed as soon as a call hangs or kills its process, so the rest need not run."""


class GoldenTests:
    """The golden tests of any problems, with what is known of their expected values and times. Thread-safe."""

    def __init__(self, sandbox: Sandbox, comparison: Comparison) -> None:
        self._sandbox, self._comparison = sandbox, comparison
        self._expected, self._time = ExpectedValues(sandbox), GoldenTime(sandbox)

    def jobs(self, problem: Problem, program: str) -> tuple[Job, ...]:
        """Return the jobs of a program's first run."""
        return golden_jobs(problem, program, SHORT)

    def results(self, runs: Sequence[GoldenRun]) -> list[tuple[GoldenResult, ...]]:
        """Return the results of programs that have run, after those that need more time have run again.

        Raises:
            SandboxError: the sandbox cannot be used at all.
        """
        expected = self._expected.of(run.problem for run in runs)
        accepted = accept_golden_answers(self._time.given(runs), expected, self._sandbox, self._comparison)
        return [golden_results(run.problem, run.reports, expected, self._comparison) for run in accepted]

    def pass_rates(
        self, problems: Iterable[Problem], jobs: Iterable[tuple[Job, ...]], reports: Iterable[JobReport]
    ) -> list[float | None]:
        """Return the share of tests that each program passes, in [0, 1]; None where any result is unknown.

        Args:
            problems: (B,) one per program.
            jobs: (B,) those of each program.
            reports: on all of the jobs, in order.

        Raises:
            SandboxError: the sandbox cannot be used at all.
        """
        given = iter(reports)
        runs = [GoldenRun(*each, tuple(islice(given, len(each[1])))) for each in zip(problems, jobs, strict=True)]
        return list(map(golden_pass_rate, self.results(runs)))


class GoldenTime:
    """Runs programs again whose solution takes longer than the short limits. Thread-safe; knows each problem once."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
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
        jobs = [golden_jobs(each, each.solution, replace(GOLDEN_LIMITS, wall_s=SHORT.wall_s)) for each in unknown]
        reports = iter(self._sandbox.run([job for of_one in jobs for job in of_one]) if jobs else ())
        for problem, of_one in zip(unknown, jobs, strict=True):
            self._known[problem.id] = tuple(_allowed(next(reports)) for _ in of_one)


def _allowed(report: JobReport) -> Limits:
    """Return the limits that follow from the solution's run of one job."""
    rule = Calibration(floor_s=SHORT.cpu_s, ceiling_s=max(SHORT.cpu_s, GOLDEN_LIMITS.cpu_s))
    cpu_s = calibrated_cpu_s(max(report.call_s, default=0.0), rule)
    sleeps = any(outcome.error_type == SLEPT for outcome in (report.load, *report.outcomes))
    factor = SHORT.job_factor if cpu_s == SHORT.cpu_s else GOLDEN_LIMITS.job_factor
    return replace(SHORT, cpu_s=cpu_s, wall_s=GOLDEN_LIMITS.wall_s if sleeps else SHORT.wall_s, job_factor=factor)


def _is_late(report: JobReport) -> bool:
    if not report.loaded:
        return report.load.kind is OutcomeKind.TIME_LIMIT
    return any(outcome.kind in (OutcomeKind.TIME_LIMIT, OutcomeKind.NOT_RUN) for outcome in report.outcomes)


def run_golden(
    programs: Sequence[tuple[Problem, str]],
    sandbox: Sandbox,
    comparison: Comparison,
    *,
    limits: Limits = PROGRAM_LIMITS,
) -> list[GoldenFinding]:
    """Return one finding per program, in order.

    Args:
        programs: each with its problem, which has golden tests; an empty program counts as failed.
        sandbox: where they run.
        comparison: when values are equal.
        limits: bounds per call of a first run; more follows from the solution's time.

    Raises:
        SandboxError: the sandbox cannot be used at all.
    """
    distinct = dict.fromkeys((problem.id, program) for problem, program in programs if program)
    problems = {problem.id: problem for problem, _ in programs}
    plans = {key: golden_jobs(problems[key[0]], key[1], limits) for key in distinct}
    jobs = [job for plan in plans.values() for job in plan]
    reports = iter(sandbox.run(jobs) if jobs else ())
    runs = [GoldenRun(problems[key[0]], plan, tuple(islice(reports, len(plan)))) for key, plan in plans.items()]
    results = GoldenTests(sandbox, comparison).results(runs)
    found = {key: _finding(of_one) for key, of_one in zip(plans, results, strict=True)}
    nothing = GoldenFinding(False, 0.0, Verdict.NO_CODE)
    return [found[problem.id, program] if program else nothing for problem, program in programs]


def _finding(results: Sequence[GoldenResult]) -> GoldenFinding:
    failed = next((each for each in results if each.passed is False), None)
    unknown = next((each for each in results if each.passed is None), None)
    rate = golden_pass_rate(results)
    if failed is not None:
        return GoldenFinding(False, rate, failed.verdict, failed.detail)
    if unknown is not None:
        return GoldenFinding(None, rate, unknown.verdict, unknown.detail, "test" if unknown.broken_test else "sandbox")
    return GoldenFinding(True, rate, Verdict.PASSED)
