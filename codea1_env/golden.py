"""Golden tests against a program: which sandbox jobs they take, and what the reports say.

Value cases share one job; each harness has one of its own. The program never shares a process with an expected value:
literals are encoded here, anything else is evaluated in the harness process, and the comparison happens here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from codea1_env import values
from codea1_env.errors import UserError
from codea1_env.outcomes import Outcome, OutcomeKind
from codea1_env.problems.problem import GoldenCase, GoldenHarness, Problem
from codea1_env.rules.replies import is_direct_call
from codea1_env.rules.ruleset import Comparison, Ruleset
from codea1_env.rules.validation import values_equal
from codea1_env.sandbox.interface import Call, Harness, Job, JobReport, Limits, Place
from codea1_env.verdicts import Verdict, verdict_of

__all__ = [
    "GOLDEN_LIMITS",
    "GoldenResult",
    "golden_jobs",
    "golden_pass_rate",
    "golden_results",
    "load_failure",
    "require_golden_tests",
]

GOLDEN_LIMITS = Limits(cpu_s=20.0, wall_s=120.0, memory_mb=2048, value_bytes=32 << 20)
"""Generous, because one EvalPlus harness makes up to a thousand calls, and some values have a million items."""

_MAX_NAMED = 5

_CHECK = "(check(candidate), None)[1]"
"""Passes iff `check` returns, whatever it returns."""


@dataclass(frozen=True, slots=True)
class GoldenResult:
    """One golden test against one program."""

    verdict: Verdict
    detail: str = ""
    """Why it is not passed, for people; at most 300 characters of the program's own words."""
    broken_test: bool = False
    """The test itself is at fault: its expected value cannot be evaluated. Says nothing about the program."""

    @property
    def passed(self) -> bool | None:
        """Whether the program passes; None where it could not be found out (our failure, or a broken test)."""
        if self.broken_test or self.verdict is Verdict.INTERNAL_ERROR:
            return None
        return self.verdict is Verdict.PASSED


def require_golden_tests(problems: Sequence[Problem], rules: Ruleset) -> None:
    """Do nothing unless `rules` pay for golden tests.

    Raises:
        UserError: they do, and a problem has none, so that nothing could ever be paid for it.
    """
    if not rules.reward.needs_golden:
        return
    without = [problem.id for problem in problems if not problem.golden]
    if without:
        listed = ", ".join(without[:_MAX_NAMED]) + (", ..." if len(without) > _MAX_NAMED else "")
        raise UserError(
            f"rules {rules.name} pay for golden tests, which {len(without)} of {len(problems)} problems do not have:"
            f" {listed}"
        )


def golden_jobs(problem: Problem, program: str, limits: Limits = GOLDEN_LIMITS) -> tuple[Job, ...]:
    """Return the jobs that run `program` against all golden tests: one for all value cases, one per harness."""

    def job(calls: Sequence[Call], harness: str = "") -> Job:
        return Job(program, problem.entry_point, tuple(calls), problem.imports, Harness(harness), limits)

    cases, harnesses = _cases(problem), _harnesses(problem)
    calls = [*_expected_calls(cases), *(_call(case, problem.entry_point) for case in cases)]
    in_harness = [job([Call(_CHECK, place=Place.HARNESS)], one.source) for one in harnesses]
    return (job(calls), *in_harness) if cases else tuple(in_harness)


def golden_results(problem: Problem, reports: Sequence[JobReport], comparison: Comparison) -> tuple[GoldenResult, ...]:
    """Return one result per golden test, in the order of `problem.golden`.

    Args:
        problem: as given to `golden_jobs`.
        reports: the reports on its jobs, in their order.
        comparison: when a value case's values are equal; harnesses compare as they please.
    """
    cases = _cases(problem)
    of_cases = iter(_case_results(cases, reports[0], comparison) if cases else ())
    of_harnesses = map(_harness_result, reports[1:] if cases else reports)
    return tuple(next(of_cases if isinstance(test, GoldenCase) else of_harnesses) for test in problem.golden)


def golden_pass_rate(results: Iterable[GoldenResult]) -> float | None:
    """Return the share of tests passed, in [0, 1]; None where there are none or any could not be found out."""
    passed = [result.passed for result in results]
    return None if not passed or None in passed else sum(map(bool, passed)) / len(passed)


def load_failure(report: JobReport) -> GoldenResult | None:
    """Return what every test of a program that did not load has for a result; None if it loaded."""
    load = report.load
    if report.loaded:
        return None
    return GoldenResult(verdict_of(load, loading=True), f"the program does not load: {load.said}")


def _cases(problem: Problem) -> list[GoldenCase]:
    return [test for test in problem.golden if isinstance(test, GoldenCase)]


def _harnesses(problem: Problem) -> list[GoldenHarness]:
    return [test for test in problem.golden if isinstance(test, GoldenHarness)]


def _call(case: GoldenCase, entry_point: str) -> Call:
    if is_direct_call(case.expression, entry_point):
        return Call(case.expression)
    return Call(case.expression, case.imports, Place.HARNESS)


def _expected_calls(cases: Iterable[GoldenCase]) -> list[Call]:
    """Ahead of the program's own calls, which may use up the job's restarts."""
    return [Call(case.expected, case.imports, Place.HARNESS) for case in cases if _literal(case.expected) is None]


@lru_cache(maxsize=65_536)
def _literal(expected: str) -> bytes | None:
    """Return the encoded value of a literal, None for anything else."""
    try:
        return values.encode(ast.literal_eval(expected.strip()), max_bytes=GOLDEN_LIMITS.value_bytes)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError, values.Opaque, values.TooLarge):
        return None


def _case_results(cases: Sequence[GoldenCase], report: JobReport, comparison: Comparison) -> list[GoldenResult]:
    failure = load_failure(report)
    if failure is not None:
        return [failure] * len(cases)
    n_expected = len(report.outcomes) - len(cases)
    evaluated = iter(report.outcomes[:n_expected])
    results = []
    for case, outcome in zip(cases, report.outcomes[n_expected:], strict=True):
        expected = _literal(case.expected)
        result = None
        if expected is None:
            expected, result = _expected(case, next(evaluated))
        results.append(result or _compared(case, outcome, expected or b"", comparison))
    return results


def _expected(case: GoldenCase, outcome: Outcome) -> tuple[bytes | None, GoldenResult | None]:
    if outcome.value is not None:
        return outcome.value, None
    if outcome.kind in (OutcomeKind.NOT_RUN, OutcomeKind.INTERNAL_ERROR):  # of which the test is innocent
        return None, GoldenResult(verdict_of(outcome), f"{case.expression}: {outcome.said}")
    detail = f"the expected value {case.expected} cannot be evaluated: {outcome.said}"
    return None, GoldenResult(verdict_of(outcome), detail, broken_test=True)


def _compared(case: GoldenCase, outcome: Outcome, expected: bytes, comparison: Comparison) -> GoldenResult:
    if outcome.value is None:
        return GoldenResult(verdict_of(outcome), f"{case.expression}: {outcome.said}")
    if values_equal(expected, outcome.value, comparison):
        return GoldenResult(Verdict.PASSED)
    return GoldenResult(
        Verdict.WRONG_ANSWER, f"{case.expression} is {values.describe(outcome.value)}, not {values.describe(expected)}"
    )


def _harness_result(report: JobReport) -> GoldenResult:
    failure = load_failure(report)
    if failure is not None:
        return failure
    (outcome,) = report.outcomes
    if outcome.kind is OutcomeKind.VALUE:
        return GoldenResult(Verdict.PASSED)
    failed_assert = outcome.kind is OutcomeKind.ERROR and outcome.error_type == "AssertionError"
    return GoldenResult(Verdict.WRONG_ANSWER if failed_assert else verdict_of(outcome), f"check: {outcome.said}")
