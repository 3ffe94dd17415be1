"""Golden tests of programs: the sandbox jobs that run them, the results in the reports, and how long they may take.

All value cases share one job; each harness has a job of its own. The program never shares a job with an expected value.
This module encodes literals itself, evaluates other expected values in a job without the program, once per problem, and
compares the values here. Only that job, or an argument that is not plain data, can show that a test is broken. No
answer of a program, of whatever size, can make its own failure count as a broken test.

Most programs and solutions answer within milliseconds, and an endless loop uses its whole limit. So every program runs
under short limits first. Only for a program that exceeds them the solution runs the same tests, once per problem, and
the program runs again if the solution's time allows it more. A program that hung twice is not asked again: the tests
that it was not asked have failed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from codea1_env import values
from codea1_env.facts.answers import Comparison, ValueBudget, as_printed
from codea1_env.facts.submissions import Candidate, TestCase
from codea1_env.facts.verdicts import (
    CandidateReport,
    CaseReport,
    GoldenFinding,
    Outcome,
    OutcomeKind,
    SuiteReport,
    ValidCase,
    ValidSuite,
    Verdict,
    verdict_of,
)
from codea1_env.judging.jobs import Terms, call_of, program_job
from codea1_env.judging.limits import calibrated_cpu_s
from codea1_env.judging.right_answers import AnsweredCalls, accept_right_answers
from codea1_env.problems.problem import GoldenCase, GoldenHarness, Problem
from codea1_env.python_text import remembered_up_to
from codea1_env.rules.reading.direct_calls import is_direct_call
from codea1_env.sandbox.interface import (
    LOADED_TOO_OFTEN,
    OPAQUE_ARGUMENT,
    SLEPT,
    Call,
    Harness,
    Job,
    JobReport,
    Limits,
    Place,
    Sandbox,
)

GOLDEN_LIMITS = Limits(cpu_s=20.0, wall_s=20.0, memory_mb=2048, value_bytes=32 << 20, max_restarts=1, job_factor=3.0)
"""Large, because one EvalPlus harness makes up to a thousand calls, and some values have a million items."""

SHORT = replace(GOLDEN_LIMITS, cpu_s=2.0, wall_s=3.0, job_factor=16.0)
"""Time limit of the first run: low, since a program that hangs on two calls costs twice as much. A second run gets what
the solution's own time allows."""
PROGRAM_LIMITS = replace(SHORT, max_restarts=0)
"""A program has failed as soon as a call hangs or kills its process, so the rest need not run."""
_FALSE_ASSERT = ("AssertionError: in the harness", "an assert is false")
_MAX_SHOWN = 200  # characters
_TOO_LONG = (
    f"is longer than {GOLDEN_LIMITS.value_bytes:,} bytes, which GOLDEN_LIMITS allows: raise its value_bytes to find out"
)
_TOO_LONG_TO_COMPARE = (
    f"the expected value has more than {values.MAX_BYTES:,} bytes or {values.MAX_NODES:,} nodes (MAX_BYTES, MAX_NODES"
    " of codea1_env.values), so that only the same bytes are known to equal it"
)
_NO_ENTRY_POINT = "no_entry_point"
_NO_PROGRAM = f"def {_NO_ENTRY_POINT}(): raise NotImplementedError"

_CHECK = "(check(candidate), None)[1]"
"""Passes iff `check` returns, whatever it returns."""


@dataclass(frozen=True, slots=True)
class GoldenResult:
    """The result of one golden test on one program."""

    verdict: Verdict
    text: str = ""
    """Why it did not pass; of a wrong answer, the expression."""
    broken_test: bool = False
    """The test itself is broken: its expected value cannot be evaluated, or it needs values that cannot be sent between
    processes or exceed the limits. No evidence about the program."""
    is_opaque: bool = False
    """An argument or a result of the test is not plain data."""
    answer: bytes | None = None
    """A wrong answer, encoded, as is the expected one; None for all other results."""
    expected: bytes = b""

    @property
    def detail(self) -> str:
        """Why it did not pass, for people; at most 300 characters of the program's own text."""
        if self.answer is None:  # a program's many wrong answers are described only where somebody reads it
            return self.text
        return f"{self.text} is {values.describe(self.answer)}, not {values.describe(self.expected)}"

    @property
    def passed(self) -> bool | None:
        """Whether the program passes; None if unknown (our own failure, a broken test, or too little time to load)."""
        if self.broken_test or self.verdict in (Verdict.INTERNAL_ERROR, Verdict.UNDECIDED):
            return None
        return self.verdict is Verdict.PASSED


class ExpectedValues:
    """Evaluates expected values that are not literals, each once. Thread-safe; it does not cache our own failures."""

    def __init__(self, sandbox: Sandbox, limits: Limits = GOLDEN_LIMITS) -> None:
        self._sandbox, self._limits = sandbox, limits
        self._known: dict[Call, Outcome] = {}

    def of(self, problems: Iterable[Problem]) -> Mapping[Call, Outcome]:
        """Return the outcome of every expected value of these problems, by the call that evaluates it.

        Raises:
            SandboxError: the sandbox cannot be used at all.
        """
        calls_of = {
            problem: dict.fromkeys(_expected_call(case) for case in _cases(problem) if _literal(case.expected) is None)
            for problem in problems
        }
        known = {call: self._known[call] for calls in calls_of.values() for call in calls if call in self._known}
        jobs = [
            Job(_NO_PROGRAM, _NO_ENTRY_POINT, missing, limits=self._limits, problem_id=problem.id)
            for problem, calls in calls_of.items()
            if (missing := tuple(call for call in calls if call not in known))
        ]
        new: dict[Call, Outcome] = {}
        for job, report in zip(jobs, self._sandbox.run(jobs) if jobs else (), strict=True):
            new.update(zip(job.calls, report.outcomes, strict=True))
        self._known.update((call, out) for call, out in new.items() if out.kind is not OutcomeKind.INTERNAL_ERROR)
        return {**known, **new}


def golden_jobs(problem: Problem, program: str, limits: Limits = GOLDEN_LIMITS) -> tuple[Job, ...]:
    """Return the jobs that run `program` against all golden tests: one for all value cases, one per harness.

    Tests of a program that works in place see the changes that it makes to their arguments.
    """

    def job(calls: Sequence[Call], source: str = "") -> Job:
        return program_job(problem, program, calls, limits, Harness(source, is_trusted=not problem.calls.in_place))

    calls, check = _calls(problem), Call(_CHECK, place=Place.HARNESS)
    in_harness = [job([check], test.source) for test in problem.golden if isinstance(test, GoldenHarness)]
    return (job(calls), *in_harness) if calls else tuple(in_harness)


@dataclass(frozen=True, slots=True)
class GoldenRun:
    """One program's run of its problem's golden tests."""

    problem: Problem
    jobs: tuple[Job, ...]
    """From `golden_jobs`."""
    reports: tuple[JobReport, ...]
    """One per job."""

    @property
    def case_calls(self) -> tuple[Call, ...]:
        """The calls of the value cases, which the first report is about; () if there are none."""
        return tuple(_calls(self.problem)) if self.jobs else ()

    def pair_answers(self, expected: Mapping[Call, Outcome]) -> AnsweredCalls:
        """Return the answers to the value cases, paired with the expected ones."""
        right = tuple(_expected_value(case, expected) for case in _cases(self.problem))
        return AnsweredCalls(self.problem, self.case_calls, right, self.reports[0])


def golden_runs(asked: Iterable[tuple[Problem, tuple[Job, ...]]], reports: Iterable[JobReport]) -> list[GoldenRun]:
    """Return the runs of programs, given their jobs and the reports on all of these, in order."""
    rest = iter(reports)
    return [GoldenRun(problem, jobs, tuple(islice(rest, len(jobs)))) for problem, jobs in asked]


def accept_golden_answers(
    runs: Sequence[GoldenRun], expected: Mapping[Call, Outcome], sandbox: Sandbox, comparison: Comparison
) -> list[GoldenRun]:
    """Return the runs with the expected answer in place of each other right one (`judging.right_answers`).

    Args:
        runs: runs of any problems; those without rules of answers are returned unchanged.
        expected: from `ExpectedValues.of` their problems.
        sandbox: where checkers run.
        comparison: how the ruleset compares values.

    Raises:
        SandboxError: the sandbox cannot be used at all.
    """
    accepting = list(runs)
    chosen = [n for n, run in enumerate(runs) if run.problem.answers.accepts_others and run.case_calls]
    answered = [runs[n].pair_answers(expected) for n in chosen]
    accepted = accept_right_answers(answered, Terms(sandbox, Limits(), comparison)) if answered else ()
    for n, report in zip(chosen, accepted, strict=True):
        accepting[n] = replace(runs[n], reports=(report, *runs[n].reports[1:]))
    return accepting


def golden_results(
    problem: Problem, reports: Sequence[JobReport], expected: Mapping[Call, Outcome], comparison: Comparison
) -> tuple[GoldenResult, ...]:
    """Return one result per golden test, in the order of `problem.golden`.

    Args:
        problem: as given to `golden_jobs`.
        reports: the reports on its jobs, in their order.
        expected: from `ExpectedValues.of` the problem.
        comparison: when a value case's values are equal; harnesses compare values themselves.
    """
    cases = _cases(problem)
    of_cases = iter(_case_results(problem, reports[0], expected, comparison) if cases else ())
    of_harnesses = map(_harness_result, reports[1:] if cases else reports)
    return tuple(next(of_cases if isinstance(test, GoldenCase) else of_harnesses) for test in problem.golden)


def golden_pass_rate(results: Iterable[GoldenResult]) -> float | None:
    """Return the share of tests passed, in [0, 1]; None if there are none or any result is unknown."""
    passed = [result.passed for result in results]
    return None if not passed or None in passed else sum(map(bool, passed)) / len(passed)


def load_failure(report: JobReport) -> GoldenResult | None:
    """Return the result that every test has if the program did not load; None if it loaded."""
    if report.loaded:
        return None
    return GoldenResult(verdict_of(report.load, loading=True), f"the program does not load: {report.load.summary}")


def _cases(problem: Problem) -> list[GoldenCase]:
    return [test for test in problem.golden if isinstance(test, GoldenCase)]


def _calls(problem: Problem) -> list[Call]:
    cases = _cases(problem)
    are_direct = [is_direct_call(case.expression, problem.entry_point) for case in cases]
    return [call_of(case.expression, case.imports, direct=it) for case, it in zip(cases, are_direct, strict=True)]


def _expected_call(case: GoldenCase) -> Call:
    return call_of(case.expected, case.imports, direct=False)


@remembered_up_to(256)
def _literal(expected: str) -> bytes | None:
    """Return the encoded value of a literal, None for anything else."""
    try:
        return values.encode(ast.literal_eval(expected.strip()), max_bytes=GOLDEN_LIMITS.value_bytes)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError, values.Opaque, values.TooLarge):
        return None


def _case_results(
    problem: Problem, report: JobReport, expected: Mapping[Call, Outcome], comparison: Comparison
) -> list[GoldenResult]:
    cases = _cases(problem)
    failure = load_failure(report)
    if failure is not None:
        return [failure] * len(cases)
    right = [_expected_value(case, expected) for case in cases]
    if (form := problem.printed) is not None:  # what an output is compared as
        right = [
            as_printed(value, form)
            if value is not None and is_direct_call(case.expression, problem.entry_point)
            else value
            for case, value in zip(cases, right, strict=True)
        ]
    judgeable = [(outcome, value) for outcome, value in zip(report.outcomes, right, strict=True) if value is not None]
    affordable = iter(
        ValueBudget().take_values([outcome for outcome, _ in judgeable], [value for _, value in judgeable])
    )
    results = []
    for case, outcome, value in zip(cases, report.outcomes, right, strict=True):
        if value is None:
            results.append(_result_of_broken_test(case, expected[_expected_call(case)]))
        elif (allowed := next(affordable)) is not outcome:
            results.append(_result_of_failure(allowed, case.expression))
        else:
            results.append(_compare(case, outcome, value, comparison))
    return results


def _expected_value(case: GoldenCase, expected: Mapping[Call, Outcome]) -> bytes | None:
    literal = _literal(case.expected)
    return expected[_expected_call(case)].value if literal is None else literal


def _result_of_broken_test(case: GoldenCase, outcome: Outcome) -> GoldenResult:
    """Return the result of a case whose expected value could not be evaluated."""
    if not outcome.kind.is_evidence:  # not a fault of the test
        return GoldenResult(Verdict.INTERNAL_ERROR, f"{case.expression}: {outcome.summary}")
    why = _TOO_LONG if outcome.kind is OutcomeKind.OUTPUT_LIMIT else f"cannot be evaluated: {outcome.summary}"
    is_opaque = outcome.kind is OutcomeKind.OPAQUE
    shown = case.expected if len(case.expected) <= _MAX_SHOWN else f"{case.expected[:_MAX_SHOWN]}..."
    detail = f"the expected value {shown} {why}"
    return GoldenResult(verdict_of(outcome), detail, broken_test=True, is_opaque=is_opaque)


def _compare(case: GoldenCase, outcome: Outcome, expected: bytes, comparison: Comparison) -> GoldenResult:
    if outcome.kind is OutcomeKind.OUTPUT_LIMIT:
        return GoldenResult(Verdict.OUTPUT_LIMIT, f"{case.expression} {_TOO_LONG}")
    if outcome.value is None:
        return _result_of_failure(outcome, case.expression)
    if comparison.equal(expected, outcome.value):
        return GoldenResult(Verdict.PASSED)
    if values.is_beyond_budget(expected):
        return GoldenResult(Verdict.OUTPUT_LIMIT, f"{case.expression}: {_TOO_LONG_TO_COMPARE}")
    return GoldenResult(Verdict.WRONG_ANSWER, case.expression, answer=outcome.value, expected=expected)


def _harness_result(report: JobReport) -> GoldenResult:
    failure = load_failure(report)
    if failure is not None:
        return failure
    (outcome,) = report.outcomes
    if outcome.kind is OutcomeKind.VALUE:
        return GoldenResult(Verdict.PASSED)
    if outcome.kind is OutcomeKind.ERROR and outcome.error_type == "AssertionError":
        return GoldenResult(Verdict.WRONG_ANSWER, f"check: {outcome.summary}".replace(*_FALSE_ASSERT))
    return _result_of_failure(outcome, "check")


def _result_of_failure(outcome: Outcome, what: str) -> GoldenResult:
    if outcome.error_type == LOADED_TOO_OFTEN and outcome.kind is OutcomeKind.NOT_RUN:
        return GoldenResult(Verdict.UNDECIDED, f"{what}: {outcome.summary}")
    is_opaque = outcome.kind is OutcomeKind.OPAQUE
    is_test = is_opaque and outcome.error_type == OPAQUE_ARGUMENT
    return GoldenResult(verdict_of(outcome), f"{what}: {outcome.summary}", broken_test=is_test, is_opaque=is_opaque)


class GoldenTests:
    """The golden tests of any problems, with what is known of their expected values and times. Thread-safe."""

    def __init__(self, sandbox: Sandbox, comparison: Comparison) -> None:
        self._sandbox, self._comparison, self.expected = sandbox, comparison, ExpectedValues(sandbox)
        self._limits_after: dict[tuple[Job, ...], tuple[Limits, ...]] = {}
        """For each of a problem's jobs, by the solution's jobs: they contain all that its time depends on."""

    def results(self, runs: Sequence[GoldenRun]) -> list[tuple[GoldenResult, ...]]:
        """Return the results of programs that have run, after those that need more time have run again.

        Raises:
            SandboxError: the sandbox cannot be used at all.
        """
        expected = self.expected.of(run.problem for run in runs)
        accepted = accept_golden_answers(self.given_time(runs), expected, self._sandbox, self._comparison)
        return [golden_results(run.problem, run.reports, expected, self._comparison) for run in accepted]

    def given_time(self, runs: Sequence[GoldenRun]) -> list[GoldenRun]:
        """Return the runs, where a job that exceeded its limits has run again if the solution takes long, too.

        Raises:
            SandboxError: the sandbox cannot be used at all.
        """
        late = [(n, k) for n, run in enumerate(runs) for k, report in enumerate(run.reports) if _is_late(report)]
        most = replace(GOLDEN_LIMITS, wall_s=SHORT.wall_s)
        timed = {n: golden_jobs(runs[n].problem, runs[n].problem.solution, most) for n, _ in late}
        unknown = [jobs for jobs in dict.fromkeys(timed.values()) if jobs not in self._limits_after]
        solved = iter(self._sandbox.run([job for jobs in unknown for job in jobs]) if unknown else ())
        for jobs in unknown:
            self._limits_after[jobs] = tuple(_limits_after(next(solved)) for _ in jobs)
        again: list[tuple[int, int, Job]] = []
        for n, k in late:
            job, limits = runs[n].jobs[k], self._limits_after[timed[n]][k]
            if limits.cpu_s > job.limits.cpu_s or limits.wall_s > job.limits.wall_s:
                allowed = replace(job.limits, cpu_s=limits.cpu_s, wall_s=limits.wall_s, job_factor=limits.job_factor)
                again.append((n, k, replace(job, limits=allowed)))
        reports = self._sandbox.run([job for *_, job in again]) if again else []
        reports_of = [list(run.reports) for run in runs]
        for (n, k, _), report in zip(again, reports, strict=True):
            reports_of[n][k] = report
        return [replace(run, reports=tuple(last)) for run, last in zip(runs, reports_of, strict=True)]


def _limits_after(report: JobReport) -> Limits:
    """Return the limits that follow from the solution's run of one job."""
    longest_s = max(report.call_s, default=0.0)
    cpu_s = calibrated_cpu_s(longest_s, floor_s=SHORT.cpu_s, ceiling_s=GOLDEN_LIMITS.cpu_s)
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
    distinct = dict.fromkeys((problem, program) for problem, program in programs if program)
    runs = _run([*distinct], sandbox, limits)
    findings = dict(zip(distinct, map(_finding, GoldenTests(sandbox, comparison).results(runs)), strict=True))
    no_program = GoldenFinding(False, 0.0, Verdict.NO_CODE)
    return [findings[problem, program] if program else no_program for problem, program in programs]


def golden_reports(
    candidates: Sequence[tuple[Problem, Candidate]], sandbox: Sandbox, comparison: Comparison
) -> list[CandidateReport]:
    """Return one report per candidate, in order, as if its golden tests were the cases of one suite.

    Tests whose result is unknown are left out; a test that is not a call with its value is `check(FUNCTION)`.

    Raises:
        SandboxError: the sandbox cannot be used at all.
    """
    runs = iter(_run([(problem, it.program) for problem, it in candidates if it.program], sandbox, PROGRAM_LIMITS))
    run_of = [next(runs) if candidate.program else None for _, candidate in candidates]
    known, tests = [run for run in run_of if run is not None], GoldenTests(sandbox, comparison)
    results = iter(tests.results(known))
    expected = tests.expected.of(run.problem for run in known)
    return [
        CandidateReport(candidate, Verdict.NO_CODE, candidate.rejection.detail if candidate.rejection else "")
        if run is None
        else _report(candidate, run, next(results), expected)
        for (_, candidate), run in zip(candidates, run_of, strict=True)
    ]


def _run(programs: Sequence[tuple[Problem, str]], sandbox: Sandbox, limits: Limits) -> list[GoldenRun]:
    jobs_by_program = [(problem, golden_jobs(problem, program, limits)) for problem, program in programs]
    jobs = [job for _, of_program in jobs_by_program for job in of_program]
    return golden_runs(jobs_by_program, sandbox.run(jobs) if jobs else ())


def _report(
    candidate: Candidate, run: GoldenRun, results: Sequence[GoldenResult], expected: Mapping[Call, Outcome]
) -> CandidateReport:
    if (failure := load_failure(run.reports[0])) is not None and results[0] == failure:
        return CandidateReport(candidate, failure.verdict, run.reports[0].load.summary)
    cases = []
    for test, result in zip(run.problem.golden, results, strict=True):
        if result.passed is None:
            continue
        what, right = f"check({run.problem.entry_point})", values.encode(None)
        if isinstance(test, GoldenCase):
            what, right = test.expression, result.expected or _expected_value(test, expected) or right
        gave = result.text.removeprefix("check: ").removeprefix(f"{what}: ")
        gave = gave if result.answer is None else values.describe(result.answer)
        cases.append(CaseReport(ValidCase(TestCase(what, None), right, None), result.verdict, gave))
    suite = ValidSuite(tuple(report.case for report in cases), (), 0, 0.0)
    return CandidateReport(candidate, Verdict.PASSED, suites=(SuiteReport(suite, tuple(cases)),))


def _finding(results: Sequence[GoldenResult]) -> GoldenFinding:
    failed = next((each for each in results if each.passed is False), None)
    unknown = next((each for each in results if each.passed is None), None)
    rate = golden_pass_rate(results)
    if failed is not None:
        return GoldenFinding(False, rate, failed.verdict, failed.detail)
    if unknown is not None:
        return GoldenFinding(None, rate, unknown.verdict, unknown.detail, "test" if unknown.broken_test else "sandbox")
    return GoldenFinding(True, rate, Verdict.PASSED)
