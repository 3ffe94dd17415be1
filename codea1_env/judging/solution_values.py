"""The solutions' values: each call runs twice, in two processes, and a cache shares the results."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import repeat
from typing import TypeAlias

from codea1_env.facts.submissions import Suite, TestCase
from codea1_env.facts.verdicts import Outcome, OutcomeKind
from codea1_env.judging.vacuity import change_evidence, sent_calls, sent_texts
from codea1_env.problems.problem import Problem
from codea1_env.rules.canonical_calls import CanonicalCalls
from codea1_env.rules.reading.direct_calls import is_direct_call
from codea1_env.rules.validation import SolutionEvidence
from codea1_env.sandbox.interface import LENGTHS_OF_EQUALS, SLEPT, Call, Harness, Job, JobReport, Limits, Place, Sandbox

_MAX_REMEMBERED = 65_536


def limits_of_solutions(limits: Limits) -> Limits:
    """Return the limits of solutions where candidates have `limits`.

    They are stricter. Otherwise the solution could pass a test just within a limit, and a right program that is a
    little slower or larger would fail it.
    """
    return replace(
        limits,
        cpu_s=limits.cpu_s / 2,
        wall_s=limits.wall_s / 2,
        memory_mb=max(1, limits.memory_mb // 2),
        value_bytes=max(1, limits.value_bytes // LENGTHS_OF_EQUALS),
    )


def call_of_case(case: TestCase) -> Call:
    """Return the call that evaluates a case."""
    return _called(case.expression, case.imports, direct=case.direct)


def call_of_prediction(case: TestCase, max_bytes: int) -> Call | None:
    """Return the call that evaluates a case's prediction; None if there is none, or its value is known already.

    A literal runs in the program's process, since it is harmless. The sandbox also evaluates a known value that is
    longer than `max_bytes`, because the sandbox reports its length.
    """
    if case.prediction is None or (case.predicted is not None and len(case.predicted) <= max_bytes):
        return None
    return _called(case.prediction, case.imports, direct=_is_literal(case.prediction))


def _called(expression: str, imports: tuple[str, ...], *, direct: bool) -> Call:
    return Call(expression) if direct else Call(expression, imports, Place.HARNESS)


Answers = Mapping[Call, SolutionEvidence]
_CallsByProblem: TypeAlias = Sequence[tuple[Problem, Sequence[Call]]]


def calls_of_suite(suite: Suite, max_bytes: int) -> Iterator[Call]:
    """Yield the calls that a suite makes of the solution: its cases, then the predictions that are to be evaluated."""
    yield from map(call_of_case, suite.cases)
    yield from filter(None, (call_of_prediction(case, max_bytes) for case in suite.cases))


def evidence_of_suite(suite: Suite, answers: Answers, max_bytes: int) -> list[SolutionEvidence]:
    """Return the solution's outcomes for each case, from the answers to `calls_of_suite`."""
    predictions = (call_of_prediction(case, max_bytes) for case in suite.cases)
    return [
        answers[call] if prediction is None else answers[call]._replace(prediction=answers[prediction].first)
        for call, prediction in zip(map(call_of_case, suite.cases), predictions, strict=True)
    ]


class SolutionValues:
    """Caches up to 65,536 answers, of the most recently used problems. Thread-safe; it does not cache our own
    failures."""

    def __init__(self, sandbox: Sandbox, limits: Limits, *, finds_vacuous: bool = False) -> None:
        """Make an empty cache.

        Args:
            sandbox: where the solutions run.
            limits: what a solution may use.
            finds_vacuous: whether to look for cases that test nothing (`Ruleset.drop_vacuous`).
        """
        self._sandbox = sandbox
        self._limits = limits
        self._finds_vacuous = finds_vacuous
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, ...], dict[Call, SolutionEvidence]] = OrderedDict()

    def answers(self, calls_by_problem: Sequence[tuple[Problem, Iterable[Call]]]) -> list[Answers]:
        """Return the answers to the calls of each problem, in the order of `calls_by_problem`."""
        found = [self._cached(problem, calls) for problem, calls in calls_by_problem]
        open_calls = [
            (problem, missing) for (problem, _), (_, missing) in zip(calls_by_problem, found, strict=True) if missing
        ]
        answered = iter(self._evaluated(open_calls))
        for (problem, _), (known, missing) in zip(calls_by_problem, found, strict=True):
            if missing:
                new = next(answered)
                known.update(new)
                self._cache(problem, new)
        return [known for known, _ in found]

    def _evaluated(self, calls_by_problem: _CallsByProblem) -> list[dict[Call, SolutionEvidence]]:
        """Run all calls of a problem together, then again those that failed only because of the others."""
        found = self._run_twice(calls_by_problem)
        again = [
            (position, calls)
            for position, answers in enumerate(found)
            for calls in _retry_groups(answers, self._limits.max_restarts + 1)
        ]
        answered = self._run_twice([(calls_by_problem[position][0], calls) for position, calls in again])
        for (position, _), answers in zip(again, answered, strict=True):
            found[position].update(answers)
        if self._finds_vacuous:
            self._find_vacuous([problem for problem, _ in calls_by_problem], found)
        return found

    def _find_vacuous(self, problems: Sequence[Problem], found: Sequence[dict[Call, SolutionEvidence]]) -> None:
        """Add to the evidence the values under changed answers of the solution."""
        answered = list(zip(problems, found, strict=True))
        for answers, changes in zip(found, change_evidence(answered, self._sandbox, self._limits), strict=True):
            answers.update({call: answers[call]._replace(change_evidence=each) for call, each in changes.items()})

    def _run_twice(self, calls_by_problem: _CallsByProblem) -> list[dict[Call, SolutionEvidence]]:
        jobs = [
            job
            for problem, calls in calls_by_problem
            for job in _both_orders(program_job(problem, problem.solution, calls, self._limits))
        ]
        reports = iter(self._sandbox.run(jobs) if jobs else ())
        found = []
        for _, calls in calls_by_problem:
            first, second = next(reports), next(reports)
            records = first.entry_point_calls or ((),) * len(calls)
            evidence = map(SolutionEvidence, _outcomes(first), _outcomes(second)[::-1], repeat(None), records)
            found.append(dict(zip(calls, evidence, strict=False)))
        return found

    def _cached(self, problem: Problem, calls: Iterable[Call]) -> tuple[dict[Call, SolutionEvidence], list[Call]]:
        distinct = dict.fromkeys(calls)
        with self._lock:
            known = self._known.get(_key(problem), {})
            recalled = {call: known[call] for call in distinct if call in known}
        return recalled, [call for call in distinct if call not in recalled]

    def _cache(self, problem: Problem, new: dict[Call, SolutionEvidence]) -> None:
        with self._lock:
            known = self._known.setdefault(_key(problem), {})
            known.update(
                (call, runs) for call, runs in new.items() if not runs.internal_error and runs.change_evidence.is_known
            )
            self._known.move_to_end(_key(problem))
            while len(self._known) > 1 and sum(map(len, self._known.values())) > _MAX_REMEMBERED:
                self._known.popitem(last=False)
            if len(known) > _MAX_REMEMBERED:
                known.clear()


def program_job(
    problem: Problem, program: str, calls: Iterable[Call], limits: Limits, harness: Harness | None = None
) -> Job:
    """Return the job that makes a program answer all calls.

    Without a harness the calls are tests of an agent. The imports of the statement hold for the program and for these
    tests, which may use them without an import of their own.
    """
    calls = tuple(calls)
    harness = replace(harness or Harness(problem.imports, is_trusted=False), source_calls=sent_texts(problem, calls))
    sent = sent_calls(problem, calls)
    return Job(program, problem.entry_point, sent, problem.imports, harness, limits, problem.script)


def canonical_calls_of(problem: Problem) -> CanonicalCalls:
    """Return the canonical form of the calls of a problem's entry point."""
    if problem.script:
        return CanonicalCalls.of_script(problem.entry_point, problem.programs.same_input)
    return CanonicalCalls.of(problem.solution, problem.entry_point)


_OTHER_ADDRESSES = "\nglobals()[''] = [*map(bytes, range(512)), *map(float, range(8)), [{i} for i in range(8)]]\n"


def _both_orders(job: Job) -> tuple[Job, Job]:
    """Return the two runs of a solution. In the second one, objects of the tests have other addresses."""
    harness = replace(job.harness, source=job.harness.source + _OTHER_ADDRESSES)
    return job, replace(job, calls=job.calls[::-1], harness=harness)


def _retry_groups(answers: Answers, n_together: int) -> Iterator[tuple[Call, ...]]:
    """Yield the calls to run again, in groups that are small enough not to fail because of each other.

    The suites of several testers share the solution's process. Calls that hang use up its restarts, so the rest is not
    run. Calls that keep memory leave too little for the others. All calls share the time to sleep.
    """
    if len(answers) == 1:
        return
    kinds = {
        call: (runs.first.kind, runs.second.kind)
        for call, runs in answers.items()
        if runs.first.value is None or runs.second.value is None
    }
    not_run = [call for call, ended in kinds.items() if OutcomeKind.NOT_RUN in ended]
    for start in range(0, len(not_run), n_together):
        yield tuple(not_run[start : start + n_together])
    slept = {each for each in kinds if SLEPT in (answers[each].first.error_type, answers[each].second.error_type)}
    yield from (
        (call,)
        for call, ended in kinds.items()
        if (OutcomeKind.MEMORY_LIMIT in ended or call in slept) and OutcomeKind.NOT_RUN not in ended
    )


def _key(problem: Problem) -> tuple[str, ...]:
    return (problem.id, problem.entry_point, problem.imports, problem.solution)


def _outcomes(report: JobReport) -> tuple[Outcome, ...]:
    """Return the outcomes; a solution that does not load fails every call with its load error."""
    return report.outcomes if report.loaded else (report.load,) * len(report.outcomes)


@lru_cache(maxsize=4096)
def _is_literal(source: str) -> bool:
    return is_direct_call(f"f({source})", "f")
