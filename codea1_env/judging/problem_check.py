"""Check problems before they are played: run every solution several times on its own golden tests and examples."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain, islice
from typing import TypeVar

from codea1_env.errors import UserError
from codea1_env.facts.entry_points import read_entry_point
from codea1_env.facts.verdicts import Outcome, OutcomeKind, Verdict
from codea1_env.judging.answer_check import answer_rules_faults
from codea1_env.judging.golden import (
    GOLDEN_LIMITS,
    ExpectedValues,
    GoldenResult,
    GoldenRun,
    accept_golden_answers,
    golden_jobs,
    golden_results,
    golden_runs,
    load_failure,
)
from codea1_env.judging.jobs import call_of, program_job
from codea1_env.problems.problem import GoldenCase, GoldenTest, Problem
from codea1_env.problems.snippets import read_test, with_known_imports
from codea1_env.python_text import TextBudget, free_names, parse
from codea1_env.rules.reading.direct_calls import is_direct_call
from codea1_env.rules.reading.statements import DEFINITIONS
from codea1_env.rules.ruleset import preset
from codea1_env.sandbox.interface import Call, Limits, Sandbox
from codea1_env.values.comparison import equal
from codea1_env.values.source import describe, describe_call

SLOW_S = 5.0
"""Right solutions of known data sets take below 2.7 s or above 10 s on an idle core; a busy core can double that."""

_BATCH_PROBLEMS = 16

_INPUT_LIMITS = Limits(cpu_s=0.5, max_restarts=2)  # an input may be one that the solution need not answer
_ANSWERS = {OutcomeKind.VALUE, OutcomeKind.ERROR}
_OTHER_SEED = '\n__import__("random").seed(1)\n'
"""Follows the solution in the second run on inputs: the sandbox begins each process with the same random numbers."""

_COMPARISON = preset("fixed").comparison

_T = TypeVar("_T")


class CheckStatus(StrEnum):
    """The result of the check of one problem."""

    OK = "ok"
    """The solution passes all golden tests and examples in every run."""
    WRONG = "wrong"
    """The solution fails a test, a test is itself broken, or so are the rules of answers: the checker fails, or rejects
    the solution's answer, or a wrong program passes all golden tests."""
    FLAKY = "flaky"
    """The results depend on the run, or on the order of the tests; or the solution answers the same call in two ways,
    which a game would call flaky though golden tests accept both."""
    SLOW = "slow"
    """The solution is right, but slower than allowed."""
    UNSUPPORTED = "unsupported"
    """An argument or a result of a test cannot be sent between processes, for example a function or an open file; or
    tests use something else of the solution than its entry point."""
    UNTESTED = "untested"
    """Its solution loads and passes any examples, but golden tests are missing."""
    UNPARSABLE = "unparsable"
    """The solution does not load, or an example cannot be read or asserts nothing."""
    INTERNAL = "internal"
    """The sandbox failed; says nothing about the problem."""


_ANSWERED = (CheckStatus.OK, CheckStatus.UNTESTED, CheckStatus.WRONG)
"""Statuses of solutions that answer: if their answers differ, that comes first, since all else depends on the run."""


@dataclass(frozen=True, slots=True)
class ProblemCheck:
    """The check of one problem."""

    problem_id: str
    status: CheckStatus
    detail: str = ""
    """One sentence; empty for OK."""
    cpu_s: float = 0.0
    """Processor seconds of the slowest run, all tests together."""


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of one solution on all of its tests."""

    results: tuple[GoldenResult, ...]
    """Golden tests first, then examples, whatever the order in which they ran."""
    load: GoldenResult | None
    """Why the solution did not load; None if it did."""
    cpu_s: float


def check_problems(
    problems: Iterable[Problem],
    sandbox: Sandbox,
    *,
    runs: int = 2,
    slow_s: float = SLOW_S,
    limits: Limits = GOLDEN_LIMITS,
    inputs: Callable[[Problem], Iterable[str]] = lambda problem: (),
    progress: Callable[[int, int], None] | None = None,
) -> tuple[ProblemCheck, ...]:
    """Return one finding per problem, in order.

    Args:
        problems: a set, or any iterable.
        sandbox: where the solutions run.
        runs: runs per solution; every second one takes the tests in reverse order, to reveal hidden state.
        slow_s: processor seconds per run above which a right solution is reported as slow.
        limits: bounds per call.
        inputs: returns expressions that call the entry point, beside those of the tests. Each is evaluated in two
            processes, and the solution must give the same answer.
        progress: called with (problems done, problems in all) after each batch.

    Raises:
        UserError: `runs` is less than 1.
        SandboxError: the sandbox cannot be used at all.
    """
    if runs < 1:
        raise UserError(f"runs must be at least 1, got {runs}")
    todo = list(problems)
    rest = iter(todo)
    done: list[ProblemCheck] = []
    while batch := list(islice(rest, _BATCH_PROBLEMS)):
        checks = _check_batch([_Plan(problem, runs, limits) for problem in batch], sandbox, slow_s)
        done.extend(_with_changes(checks, [(each, tuple(inputs(each))) for each in batch], sandbox))
        if progress is not None:
            progress(len(done), len(todo))
    return tuple(done)


class _Plan:
    """The runs of one problem: per run the problem with its examples among its golden tests, and the jobs."""

    def __init__(self, problem: Problem, runs: int, limits: Limits) -> None:
        self.problem = problem
        self.fault = ""
        tests = problem.golden
        try:
            tests += tuple(test for line in problem.examples for test in _example_tests(line, problem))
        except UserError as error:
            self.fault = str(error)
        tests = with_known_imports(replace(problem, golden=tests)).golden
        self.orders = [replace(problem, golden=_reverse_in(run, tests)) for run in range(runs)]
        # Without any test the solution is still loaded.
        self.jobs = [
            golden_jobs(order, order.solution, limits) or (program_job(order, order.solution, (), limits),)
            for order in self.orders
        ]

    def name_of(self, position: int) -> str:
        """Return the name of the test at this position, for messages."""
        n_golden = len(self.problem.golden)
        return f"golden test {position + 1}" if position < n_golden else f"example {position - n_golden + 1}"


def _reverse_in(run: int, items: tuple[_T, ...]) -> tuple[_T, ...]:
    """Reverse the items in every second run; applied twice it changes nothing."""
    return items if run % 2 == 0 else items[::-1]


def _example_tests(line: str, problem: Problem) -> tuple[GoldenTest, ...]:
    what, functions = f"the example {line!r}", problem.calls.functions
    tests = read_test(line, problem.imports, problem.entry_point, what, functions=functions)
    if "assert" not in line:
        raise UserError(f"{what} asserts nothing: expected asserts, as in 'assert {problem.entry_point}(1) == 2'")
    return tests


def _check_batch(plans: Sequence[_Plan], sandbox: Sandbox, slow_s: float) -> list[ProblemCheck]:
    made = [  # one run after the other: the calls that a harness makes in the first one are read ahead in the next
        golden_runs(run, sandbox.run([job for _, jobs in run for job in jobs]))
        for run in zip(*(zip(plan.orders, plan.jobs, strict=True) for plan in plans), strict=True)
    ]
    solved = [*zip(*made, strict=True)]
    expected = ExpectedValues(sandbox).of(plan.orders[0] for plan in plans)
    faults = answer_rules_faults([runs[0] for runs in solved], sandbox, _COMPARISON)
    checks = []
    for plan, own, fault in zip(plans, solved, faults, strict=True):
        accepted = accept_golden_answers(own, expected, sandbox, _COMPARISON)
        runs = []
        for number, run in enumerate(accepted):
            results = golden_results(run.problem, run.reports, expected, _COMPARISON) if run.problem.golden else ()
            failures = [failure for report in run.reports if (failure := load_failure(report)) is not None]
            cpu_s = sum(report.cpu_s for report in run.reports)
            runs.append(_Run(_reverse_in(number, results), failures[0] if failures else None, cpu_s))
        cpu_s = max(run.cpu_s for run in runs)
        status, detail = _status(plan, runs, slow_s)
        if status in _ANSWERED and (change := _changed_answer(own)):
            status, detail = CheckStatus.FLAKY, change
        if fault and status in (CheckStatus.OK, CheckStatus.INTERNAL):
            status, detail = CheckStatus.WRONG, fault
        checks.append(ProblemCheck(plan.problem.id, status, detail, cpu_s))
    return checks


def _with_changes(
    checks: Sequence[ProblemCheck], asked: Iterable[tuple[Problem, tuple[str, ...]]], sandbox: Sandbox
) -> list[ProblemCheck]:
    """Return the checks, FLAKY for a solution that answers one of the expressions in two ways."""
    changed, jobs, positions = list(checks), [], []
    for position, (check, (problem, texts)) in enumerate(zip(checks, asked, strict=True)):
        if check.status in _ANSWERED and not problem.answers.accepts_others:
            calls = [call_of(text, (), direct=is_direct_call(text, problem.entry_point)) for text in texts]
            job = program_job(problem, problem.solution, calls, _INPUT_LIMITS)
            jobs += [job, replace(job, program=job.program + _OTHER_SEED * (not job.script), calls=job.calls[::-1])]
            positions.append(position)
    reports = sandbox.run(jobs) if jobs else ()
    for position, job, one, other in zip(positions, jobs[::2], reports[::2], reports[1::2], strict=True):
        answers = zip(job.calls, one.outcomes, other.outcomes[::-1], strict=True)
        changes = (
            f"answers differ: {call.expression:.80} {change}"
            for call, *both in answers
            if {each.kind for each in both} <= _ANSWERS and (change := _change(*both))
        )
        if detail := next(changes, ""):
            changed[position] = replace(changed[position], status=CheckStatus.FLAKY, detail=detail)
    return changed


def _changed_answer(runs: Sequence[GoldenRun]) -> str:
    """Say which call a solution answers in two ways, as its runs are processes of their own; empty if none."""
    if runs[0].problem.answers.accepts_others:
        return ""
    first: dict[Call | bytes, Outcome] = {}
    for run in runs:
        direct = zip(run.case_calls, run.reports[0].outcomes, strict=False) if run.case_calls else ()
        inner = chain.from_iterable(calls for report in run.reports for calls in report.entry_point_calls)
        for call, outcome in (*direct, *((each.arguments, each.answer) for each in inner)):
            if outcome is None or outcome.value is None:
                continue
            before = first.setdefault(call, outcome)
            if change := _change(before, outcome):
                what = call.expression if isinstance(call, Call) else describe_call(run.problem.entry_point, call, 80)
                return f"answers differ: {what:.80} {change}"
    return ""


def _change(one: Outcome, other: Outcome) -> str:
    """Say how two outcomes of one call differ; empty if they do not."""
    if one.value == other.value or (one.value and other.value and equal(one.value, other.value, nan_equal=True)):
        return ""
    texts = [
        f"raises {each.error_type}" if each.value is None else f"gives {describe(each.value, 80)}"
        for each in (one, other)
    ]
    return f"{texts[0]}, and in another run {texts[1]}"


def _status(plan: _Plan, runs: Sequence[_Run], slow_s: float) -> tuple[CheckStatus, str]:
    loads = [run.load for run in runs if run.load is not None]
    for result in (*loads, *(result for run in runs for result in run.results)):
        if result.verdict is Verdict.INTERNAL_ERROR:
            return CheckStatus.INTERNAL, result.detail
    if loads:
        if len(loads) < len(runs):
            return CheckStatus.FLAKY, f"in one run {loads[0].detail}, in another it does"
        return _failure_status(loads[0], CheckStatus.UNPARSABLE), loads[0].detail
    if plan.fault:
        return CheckStatus.UNPARSABLE, plan.fault
    return _status_of_tests(plan, runs, slow_s)


def _status_of_tests(plan: _Plan, runs: Sequence[_Run], slow_s: float) -> tuple[CheckStatus, str]:
    for position, results in enumerate(zip(*(run.results for run in runs), strict=True)):
        bad = next((result for result in results if not result.passed), None)
        if bad is None:
            continue
        detail = f"{plan.name_of(position)}: {bad.detail}{_in_place_hint(plan.problem, bad)}"
        if other := _other_parts(plan.problem):
            tested = plan.problem.entry_point
            return CheckStatus.UNSUPPORTED, f"{detail}: its tests use {other} of the solution besides {tested}"
        if any(result.passed for result in results):
            return CheckStatus.FLAKY, f"passed in one run, not in another: {detail}"
        return _failure_status(bad, CheckStatus.WRONG), detail
    slowest = max(run.cpu_s for run in runs)
    if slowest > slow_s:
        return CheckStatus.SLOW, f"one run takes {slowest:.1f} s of processor time"
    return (CheckStatus.OK, "") if plan.problem.golden else (CheckStatus.UNTESTED, "it has no golden tests")


def _other_parts(problem: Problem) -> str:
    """Return a function or class of the solution, besides the one that is tested, that the golden tests use."""
    tested = read_entry_point(problem.entry_point).name
    tree = parse(problem.solution, TextBudget.of_row())
    others = {node.name for node in tree.body if isinstance(node, DEFINITIONS) and node.name != tested}
    texts = [test.expression if isinstance(test, GoldenCase) else test.source for test in problem.golden]
    used = (name for text in texts if any(each in text for each in others) for name in free_names(text) & others)
    return min(used, default="")


def _in_place_hint(problem: Problem, bad: GoldenResult) -> str:
    """Say what is missing if a solution that returns nothing fails an assert: its tests look at arguments."""
    returns = any(
        isinstance(node, ast.Return) and node.value for node in ast.walk(parse(problem.solution, TextBudget.of_row()))
    )
    if problem.script or problem.calls.in_place or returns or "an assert is false" not in bad.detail:
        return ""
    return '; the solution returns nothing: to test changed arguments, state "calls": {"in_place": true}'


def _failure_status(result: GoldenResult, otherwise: CheckStatus) -> CheckStatus:
    if result.is_opaque:
        return CheckStatus.UNSUPPORTED
    return CheckStatus.SLOW if result.verdict is Verdict.TIME_LIMIT else otherwise
