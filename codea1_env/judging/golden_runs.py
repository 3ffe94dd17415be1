"""Run many programs against golden tests together, each distinct program once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from codea1_env.facts.verdicts import GoldenFinding, Verdict
from codea1_env.judging.golden import (
    ExpectedValues,
    GoldenResult,
    GoldenRun,
    accept_golden_answers,
    golden_jobs,
    golden_pass_rate,
    golden_results,
)
from codea1_env.judging.golden_time import SHORT, GoldenTime
from codea1_env.problems.problem import Problem
from codea1_env.rules.ruleset import Comparison
from codea1_env.sandbox.interface import Limits, Sandbox

PROGRAM_LIMITS = replace(SHORT, max_restarts=0)
"""A program has failed as soon as a call hangs or kills its process, so the rest need not run."""


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
        limits: bounds per call of a first run; more follows from the solution's time (`golden_time`).

    Raises:
        SandboxError: the sandbox cannot be used at all.
    """
    distinct = dict.fromkeys((problem.id, program) for problem, program in programs if program)
    problems = {problem.id: problem for problem, _ in programs}
    plans = {key: golden_jobs(problems[key[0]], key[1], limits) for key in distinct}
    jobs = [job for plan in plans.values() for job in plan]
    reports = iter(sandbox.run(jobs) if jobs else ())
    expected = ExpectedValues(sandbox).of(problems.values())
    runs = [GoldenRun(problems[key[0]], plan, tuple(islice(reports, len(plan)))) for key, plan in plans.items()]
    accepted = accept_golden_answers(GoldenTime(sandbox).given(runs), expected, sandbox, comparison)
    found = {
        key: _finding(golden_results(run.problem, run.reports, expected, comparison))
        for key, run in zip(plans, accepted, strict=True)
    }
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
