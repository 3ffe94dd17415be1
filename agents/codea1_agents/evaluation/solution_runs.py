"""Runs tests on the solution and its mutants: the sandbox work of a tester's figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from codea1_agents.scripted.mutation import Mutant, mutants_of
from codea1_env.facts.answers import Comparison
from codea1_env.facts.submissions import RejectionReason, Suite, TestCase
from codea1_env.facts.verdicts import OutcomeKind, ValidCase, ValidSuite
from codea1_env.judging.jobs import Terms, call_of_case, program_job
from codea1_env.judging.right_answers import (
    AnsweredCalls,
    SuiteEvidence,
    accept_right_answers,
    accept_right_predictions,
)
from codea1_env.judging.solution_values import (
    SolutionValues,
    calls_of_suite,
    canonical_calls_of,
    evidence_of_suite,
    limits_of_solutions,
)
from codea1_env.problems.problem import Problem
from codea1_env.rules.ruleset import Ruleset, Validation
from codea1_env.rules.validation import SuiteRules, validate
from codea1_env.sandbox.interface import Call, JobReport, Limits, Sandbox

_MUTANT_LIMITS = Limits(cpu_s=1.0, wall_s=10.0, max_restarts=0)
"""A call that hangs or dies kills the mutant, so the remaining calls need not run."""


@dataclass(frozen=True, slots=True)
class CheckedTest:
    """One test after the solution ran it."""

    case: TestCase | None
    """None if no test could be read."""
    expected: bytes | None = None
    """The solution's value; None unless the test is right."""
    fault: RejectionReason | None = None
    """Reason for which the test is not right."""
    filled: ValidCase | None = None
    """The test with the solution's value, also where the prediction is wrong; None where there is no such value."""

    @property
    def right(self) -> bool:
        """Whether the solution passes it."""
        return self.expected is not None


def check_tests(
    batch: Sequence[tuple[Problem, Suite, Sequence[CheckedTest | TestCase]]],
    sandbox: Sandbox,
    rules: Ruleset,
    limits: Limits,
) -> list[tuple[ValidSuite, tuple[CheckedTest, ...]] | None]:
    """Return per problem its suite under the game's rules, and each test checked by itself; None if the sandbox failed.

    Under the rules, a test that repeats another one is a duplicate. By itself it is right if the solution passes it, as
    in UnLeakedTestBench.

    Args:
        batch: per problem: the problem, all its tests as one suite, and the tests in order; a test that could not be
            read is a `CheckedTest` already.
        sandbox: where the solutions run.
        rules: decide how values are compared.
        limits: bounds per call for candidates; solutions get half of them.
    """
    bounds = limits_of_solutions(limits)
    solutions = SolutionValues(sandbox, bounds, finds_vacuous=rules.drop_vacuous)
    max_bytes = limits.value_bytes
    answers = solutions.answers([(problem, calls_of_suite(suite, max_bytes)) for problem, suite, _ in batch])
    suites = [
        SuiteEvidence(problem, suite, evidence_of_suite(suite, known, max_bytes))
        for (problem, suite, _), known in zip(batch, answers, strict=True)
    ]
    evidence_of_suites = accept_right_predictions(suites, Terms(sandbox, bounds, rules.comparison))
    suites_and_tests: list[tuple[ValidSuite, tuple[CheckedTest, ...]] | None] = []
    for (problem, suite, tests), evidence in zip(batch, evidence_of_suites, strict=True):
        each = SuiteRules(Validation.DROP_WRONG, rules.comparison, output=problem.printed)
        canonical = canonical_calls_of(problem) if rules.drop_rewritten else None
        whole = validate(suite, evidence, replace(each, canonical=canonical))
        if whole.internal_error:
            suites_and_tests.append(None)
            continue
        filling = replace(each, validation=Validation.FILL)
        alone = (validate(Suite((case,)), [one], filling) for case, one in zip(suite.cases, evidence, strict=True))
        checked = tuple(test if isinstance(test, CheckedTest) else _check_test(test, next(alone)) for test in tests)
        suites_and_tests.append((whole, checked))
    return suites_and_tests


def _check_test(case: TestCase, suite: ValidSuite) -> CheckedTest:
    filled = suite.cases[0] if suite.cases else None
    if filled is not None and filled.prediction_right is not False:
        return CheckedTest(case, filled.expected, filled=filled)
    reasons = [rejection.reason for rejection in suite.rejections]
    return CheckedTest(case, fault=(reasons or [RejectionReason.WRONG_PREDICTION])[0], filled=filled)


def drawn_mutants(problem: Problem, at_most: int, seed: int) -> tuple[Mutant, ...]:
    """Return the problem's mutants, or a sample of `at_most` that takes the operators in turns.

    The sample depends on the seed and the problem, not on the tester, so all testers get the same mutants.
    """
    mutants = mutants_of(problem)
    if len(mutants) <= at_most:
        return mutants
    rng = np.random.default_rng([seed, *problem.id.encode("utf-8", "surrogatepass")])
    order = rng.permutation(len(mutants))
    turns: list[tuple[int, int, int]] = []
    of_operator: dict[str, int] = {}
    for rank, position in enumerate(map(int, order)):
        operator = mutants[position].operator
        turns.append((of_operator.get(operator, 0), rank, position))
        of_operator[operator] = of_operator.get(operator, 0) + 1
    return tuple(mutants[position] for position in sorted(position for _, _, position in sorted(turns)[:at_most]))


@dataclass(frozen=True, slots=True)
class MutantRuns:
    """The mutants of a problem that its tests kill."""

    killed_by: tuple[int | None, ...]
    """Per mutant the position of the first right test that kills it."""
    n_masked: int
    """Mutants left out: the sandbox failed on them."""


def run_mutants(
    batch: Sequence[tuple[Problem, Sequence[CheckedTest], Sequence[Mutant]]], sandbox: Sandbox, comparison: Comparison
) -> list[MutantRuns]:
    """Return which tests kill which mutants.

    A test kills a mutant that does not return the solution's value within a second of processor time, for example
    because it raises, hangs, dies, or does not load (UnLeakedTestBench counts all of these). Wrong tests kill nothing.
    """
    plans = [
        [program_job(problem, mutant.program, _calls(tests), _MUTANT_LIMITS) for mutant in mutants]
        for problem, tests, mutants in batch
    ]
    tasks = [
        (problem, tests, job)
        for (problem, tests, _), plan in zip(batch, plans, strict=True)
        for job in plan
        if job.calls
    ]
    reported = sandbox.run([job for *_, job in tasks]) if tasks else []
    answered = [
        AnsweredCalls(problem, job.calls, tuple(test.expected for test in tests if test.right), report)
        for (problem, tests, job), report in zip(tasks, reported, strict=True)
    ]
    reports = iter(accept_right_answers(answered, Terms(sandbox, _MUTANT_LIMITS, comparison)))
    runs = []
    for (_, tests, _), plan in zip(batch, plans, strict=True):
        killers = [_killer(next(reports), tests, comparison) if job.calls else None for job in plan]
        known = tuple(killer for killer in killers if killer != _UNKNOWN)
        runs.append(MutantRuns(known, len(killers) - len(known)))
    return runs


_UNKNOWN = -1


def _calls(tests: Sequence[CheckedTest]) -> list[Call]:
    return [call_of_case(test.case) for test in tests if test.case is not None and test.right]


def _killer(report: JobReport, tests: Sequence[CheckedTest], comparison: Comparison) -> int | None:
    """Return the position of the first test that kills, or `_UNKNOWN`."""
    right = [position for position, test in enumerate(tests) if test.right]
    if report.load.kind is OutcomeKind.INTERNAL_ERROR:
        return _UNKNOWN
    if not report.loaded:
        return right[0]
    for position, outcome in zip(right, report.outcomes, strict=True):
        if outcome.kind in (OutcomeKind.INTERNAL_ERROR, OutcomeKind.NOT_RUN):
            return _UNKNOWN
        expected = tests[position].expected or b""
        if outcome.value is None or not comparison.equal(expected, outcome.value):
            return position
    return None
