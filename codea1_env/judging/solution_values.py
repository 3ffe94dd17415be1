"""The solutions' values: each call runs twice, in two processes, and a cache shares the results.

To find vacuous cases, a case that is not direct is evaluated again, without any program. It gets the answers of the
solution's first run, changed in each of `N_CHANGES` ways (`sandbox.inside.changes`). The case is vacuous if it keeps
the solution's value under at least one change and has another value under none (`rules.validation.ChangeEvidence`). An
evaluation that raises, hangs or ends its process is not evidence. A case with an answer that cannot be sent between
processes is skipped.

A case that expects an exception is false whenever the entry point answers, so no answer needs to be changed. It is
vacuous if the arguments do not fit the solution's parameters: then Python raises TypeError before any program begins.

The same method shows whether a case that may read an argument after a call does so: it has another value, or raises,
when the arguments are changed and the answers are not (`ChangeEvidence.sees_arguments`).

Testers write these expressions, so they run in the sandbox, and this module compares the values.
"""

from __future__ import annotations

import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import repeat
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from codea1_env import values
from codea1_env.facts.entry_points import placeholder_program, read_entry_point
from codea1_env.facts.submissions import Suite
from codea1_env.facts.verdicts import TOO_MANY, Outcome, OutcomeKind
from codea1_env.judging.jobs import call_of_case, call_of_prediction, program_job, sent_calls
from codea1_env.problems.problem import Problem
from codea1_env.rules.canonical_calls import CanonicalCalls, fits, may_see_arguments, parameters_of
from codea1_env.rules.reading.frameworks import RAISES
from codea1_env.rules.validation import ChangeEvidence, SolutionEvidence
from codea1_env.sandbox.inside.changes import (
    CHANGES_OF_ARGUMENTS,
    N_CHANGES,
    N_CHANGES_IN_PLACE,
    N_DECISIVE,
    NoChange,
)
from codea1_env.sandbox.interface import (
    LEAST_OF_A_LIMIT,
    LENGTHS_OF_EQUALS,
    SLEPT,
    Call,
    Harness,
    Job,
    Limits,
    Place,
    Sandbox,
)

_MAX_BYTES = 64 << 20
"""Of all answers of a cache. One of more than a thousandth of it is not kept, so that few cannot displace the rest."""


def limits_of_solutions(limits: Limits) -> Limits:
    """Return the limits of solutions where candidates have `limits`.

    They are stricter. Otherwise the solution could pass a test just within a limit, and a right program that is a
    little slower or larger would fail it.
    """
    return replace(
        limits,
        cpu_s=max(LEAST_OF_A_LIMIT, limits.cpu_s / 2),
        wall_s=max(LEAST_OF_A_LIMIT, limits.wall_s / 2),
        memory_mb=max(1, limits.memory_mb // 2),
        value_bytes=max(1, limits.value_bytes // LENGTHS_OF_EQUALS),
    )


Answers = Mapping[Call, SolutionEvidence]
_K = TypeVar("_K")
_C = TypeVar("_C")
_A = TypeVar("_A")
_CallsByProblem: TypeAlias = Sequence[tuple[Problem, Sequence[Call]]]


def calls_of_suite(suite: Suite, max_bytes: int) -> list[Call]:
    """Return the calls that a suite makes of the solution: its cases, then the predictions that are to be evaluated."""
    predictions = [call_of_prediction(case, max_bytes) for case in suite.cases]
    return [*map(call_of_case, suite.cases), *filter(None, predictions)]


def evidence_of_suite(suite: Suite, answers: Answers, max_bytes: int) -> list[SolutionEvidence]:
    """Return the solution's outcomes for each case, from the answers to `calls_of_suite`."""
    predictions = [call_of_prediction(case, max_bytes) for case in suite.cases]
    return [
        answers[call] if prediction is None else answers[call]._replace(prediction=answers[prediction].first)
        for call, prediction in zip(map(call_of_case, suite.cases), predictions, strict=True)
    ]


class RecentAnswers(Generic[_K, _C, _A]):
    """The answers of programs used last: 64 MiB of them, none above 64 KiB. Not thread-safe."""

    def __init__(self) -> None:
        self._known: OrderedDict[_K, dict[_C, _A]] = OrderedDict()
        self._n_bytes: Counter[_K] = Counter()

    def of(self, key: _K) -> Mapping[_C, _A]:
        """Return the answers of a program by its calls; it is the one used last from now on."""
        if key in self._known:
            self._known.move_to_end(key)
        return self._known.get(key, {})

    def add(self, key: _K, new: Mapping[_C, _A], n_bytes: Callable[[_C, _A], int]) -> None:
        """Keep answers of a program."""
        if key not in self._known:
            self._known[key], self._n_bytes[key] = {}, len(repr(key))
        known = self._known[key]
        for call, answer in new.items():
            if (size := n_bytes(call, answer)) <= _MAX_BYTES >> 10 and call not in known:
                known[call] = answer
                self._n_bytes[key] += size
        while self._known and self._n_bytes.total() > _MAX_BYTES:
            del self._n_bytes[self._known.popitem(last=False)[0]]


class SolutionValues:
    """Caches answers of solutions, as `RecentAnswers`. Thread-safe; it does not cache our own failures."""

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
        self._known: RecentAnswers[tuple[object, ...], Call, SolutionEvidence] = RecentAnswers()

    def answers(self, calls_by_problem: Sequence[tuple[Problem, Iterable[Call]]]) -> list[Answers]:
        """Return the answers to the calls of each problem, in the order of `calls_by_problem`."""
        problems = [problem for problem, _ in calls_by_problem]
        # All that the answers of a solution depend on.
        keys = [(it.id, it.entry_point, it.imports, it.solution, it.script, it.calls) for it in problems]
        calls_of = [dict.fromkeys(calls) for _, calls in calls_by_problem]
        with self._lock:
            cached = [self._known.of(key) for key in keys]
            answers = [
                {call: known[call] for call in calls if call in known}
                for calls, known in zip(calls_of, cached, strict=True)
            ]
        missing = [
            (n, [call for call in calls if call not in answers[n]])
            for n, calls in enumerate(calls_of)
            if len(answers[n]) < len(calls)
        ]
        new_answers = self._evaluate([(problems[n], calls) for n, calls in missing])
        for (n, _), new in zip(missing, new_answers, strict=True):
            answers[n].update(new)
            final = {it: runs for it, runs in new.items() if not runs.internal_error and runs.change_evidence.is_known}
            with self._lock:
                self._known.add(keys[n], final, _n_bytes)
        return list[Answers](answers)

    def _evaluate(self, calls_by_problem: _CallsByProblem) -> list[dict[Call, SolutionEvidence]]:
        """Run all calls of a problem together, then again those that failed only because of the others."""
        answers = self._run_twice(calls_by_problem)
        again = [
            (position, calls)
            for position, known in enumerate(answers)
            for calls in _retry_groups(known, self._limits.max_restarts + 1)
        ]
        answered = self._run_twice([(calls_by_problem[position][0], calls) for position, calls in again])
        for (position, _), known in zip(again, answered, strict=True):
            answers[position].update(known)
        if self._finds_vacuous:
            changed = [
                _ChangedCalls(problem, known)
                for (problem, _), known in zip(calls_by_problem, answers, strict=True)
                if any(call.place is Place.HARNESS for call in known)
            ]
            if changed:
                _evaluate_changed(changed, self._sandbox, self._limits)
        return answers

    def _run_twice(self, calls_by_problem: _CallsByProblem) -> list[dict[Call, SolutionEvidence]]:
        jobs = []
        for problem, calls in calls_by_problem:
            job = program_job(problem, problem.solution, calls, self._limits)
            # In the second run, objects of the tests have other addresses.
            harness = replace(job.harness, source=job.harness.source + _OTHER_ADDRESSES)
            jobs += [job, replace(job, calls=job.calls[::-1], harness=harness)]
        reports = self._sandbox.run(jobs) if jobs else ()
        # A solution that does not load fails every call with its load error.
        outcomes = [it.outcomes if it.loaded else (it.load,) * len(it.outcomes) for it in reports]
        answers = []
        for n, (_, calls) in enumerate(calls_by_problem):
            records = reports[2 * n].entry_point_calls or ((),) * len(calls)
            evidence = map(SolutionEvidence, outcomes[2 * n], outcomes[2 * n + 1][::-1], repeat(None), records)
            answers.append(dict(zip(calls, evidence, strict=False)))
        return answers


def _n_bytes(call: Call, runs: SolutionEvidence) -> int:
    """Return about how many bytes an answer takes, and at least a kibibyte."""
    recorded = runs.entry_point_calls
    outcomes = (runs.first, runs.second, *(each.answer for each in recorded))
    texts = (call.expression, *(each.arguments for each in recorded))
    kept = (*texts, *(value for each in outcomes if each for value in (each.value, each.items, each.arguments)))
    return 1024 + sum(len(each) for each in kept if each)


def canonical_calls_of(problem: Problem) -> CanonicalCalls:
    """Return the canonical form of the calls of a problem's entry point."""
    if problem.script:
        return CanonicalCalls.of_script(problem.entry_point, problem.programs.same_input)
    return CanonicalCalls.of(problem.solution, problem.entry_point)


_OTHER_ADDRESSES = "\nglobals()[''] = [*map(bytes, range(512)), *map(float, range(8)), [{i} for i in range(8)]]\n"


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


# -- changed answers --

_CPU_S, _MAX_RESTARTS = 0.25, 3
_MAX_JOB_BYTES = 1 << 20  # of records
_NOT_BOUND = re.compile(r"[\w.<>]+\(\) (?:missing|takes|got) ")
"""How messages begin by which Python says that arguments do not fit."""
_ROUNDS = (range(1), range(1, N_DECISIVE), range(N_DECISIVE, N_CHANGES))  # most cases are false under the first


class _ChangedCalls:
    """The calls of one problem whose answers can be changed, and what is known of them."""

    def __init__(self, problem: Problem, answers: dict[Call, SolutionEvidence]) -> None:
        self.problem = problem
        self.answers = answers
        self.evidence = {call: ChangeEvidence() for call, runs in answers.items() if _can_be_changed(call, runs)}

    def trials(self, changes: range) -> Iterator[_Trial]:
        """Yield the trials of the calls about which some changes can tell anything new.

        The records of each trial are limited to `_MAX_JOB_BYTES`.
        """
        if changes is CHANGES_OF_ARGUMENTS:  # of calls that are not vacuous and may read an argument
            calls = [
                call
                for call, so_far in self.evidence.items()
                if so_far.n_false and may_see_arguments(call.expression, self.answers[call].entry_point_calls)
            ]
        else:  # of those that have been false under no change
            calls = [call for call, so_far in self.evidence.items() if so_far.is_known and not so_far.n_false]
        if self.problem.calls.in_place and changes.stop == N_CHANGES:
            changes = range(changes.start, N_CHANGES_IN_PLACE)
        batch: list[Call] = []
        n_bytes = 0
        for call in calls:
            record = self.answers[call].entry_point_calls
            answers = [made.answer for made in record if made.answer is not None]
            parts = [part for each in answers for part in (each.value, each.items, each.arguments) if part is not None]
            n_more = sum(map(len, parts)) + sum(len(made.arguments) for made in record)
            if batch and n_bytes + n_more > _MAX_JOB_BYTES:
                yield _Trial(self, tuple(batch), changes)
                batch, n_bytes = [], 0
            batch.append(call)
            n_bytes += n_more
        if batch:
            yield _Trial(self, tuple(batch), changes)

    def count(self, outcomes: Iterable[tuple[Call, Outcome]]) -> None:
        """Add evaluations of calls."""
        for call, outcome in outcomes:
            so_far = self.evidence[call]
            if outcome.kind is OutcomeKind.INTERNAL_ERROR:
                self.evidence[call] = so_far._replace(is_known=False)
            elif outcome.value is not None:
                is_true = _is_same(self.answers[call], outcome)
                n_true, n_false = so_far.n_true + is_true, so_far.n_false + (not is_true)
                self.evidence[call] = so_far._replace(n_true=n_true, n_false=n_false)


class _Trial(NamedTuple):
    """Some calls of one problem under some changes."""

    of: _ChangedCalls
    calls: tuple[Call, ...]
    changes: range

    @property
    def pairs(self) -> list[tuple[Call, int]]:
        """Each call with each change; the changes that may slow a test down come last."""
        return [(call, change) for change in self.changes for call in self.calls]

    def job(self, limits: Limits) -> Job:
        problem, answers = self.of.problem, self.of.answers
        name = read_entry_point(problem.entry_point).name
        record_of = {call: number for number, call in enumerate(self.calls)}
        sent = dict(zip(self.calls, sent_calls(problem, self.calls), strict=True))
        calls = tuple(
            sent[call]._replace(imports=(f"{name} = {name}.changed({record_of[call]}, {change})", *call.imports))
            for call, change in self.pairs
        )
        records = tuple(answers[call].entry_point_calls for call in self.calls)
        harness = Harness(problem.imports, is_trusted=False, records=records)
        program = placeholder_program(problem.entry_point)
        return Job(program, problem.entry_point, calls, "", harness, limits, problem.script, problem_id=problem.id)


_Outcomes: TypeAlias = list[tuple[Call, Outcome]]


def _evaluate_changed(changed: Sequence[_ChangedCalls], sandbox: Sandbox, limits: Limits) -> None:
    """Add to the answers the values of calls under changed answers, and which calls do not see changed arguments.

    A call that is false under one of the first changes is not evaluated under the others. Each evaluation gets less
    time than a solution. Calls that were not run because others hang run once more, each alone.
    """
    run = partial(_run, sandbox=sandbox, limits=limits)
    for changes in _ROUNDS:
        alone = []
        for trial, outcomes in run([trial for calls in changed for trial in calls.trials(changes)]):
            again = {call for call, outcome in outcomes if outcome.kind is OutcomeKind.NOT_RUN}
            if len(trial.calls) > 1:
                alone += [trial._replace(calls=(call,)) for call in trial.calls if call in again]
                outcomes = [pair for pair in outcomes if pair[0] not in again]  # noqa: PLW2901
            trial.of.count(outcomes)
        for trial, outcomes in run(alone):
            trial.of.count(outcomes)
    for trial, outcomes in run([trial for calls in changed for trial in calls.trials(CHANGES_OF_ARGUMENTS)]):
        answers, evidence = trial.of.answers, trial.of.evidence
        for call in trial.calls:
            seen = [each for of, each in outcomes if of == call and each.error_type != NoChange.__name__]
            if seen and all(_is_same(answers[call], each) for each in seen):
                evidence[call] = evidence[call]._replace(sees_arguments=False)
    for calls in changed:
        raising = [call for call, runs in calls.answers.items() if _raises_anyway(calls.problem, call, runs)]
        calls.evidence.update(dict.fromkeys(raising, ChangeEvidence(n_true=1)))
        calls.answers.update(
            {it: calls.answers[it]._replace(change_evidence=new) for it, new in calls.evidence.items()}
        )


def _run(trials: Sequence[_Trial], sandbox: Sandbox, limits: Limits) -> Iterator[tuple[_Trial, _Outcomes]]:
    if not trials:
        return
    less = replace(limits, cpu_s=min(_CPU_S, limits.cpu_s), max_restarts=min(_MAX_RESTARTS, limits.max_restarts))
    for trial, report in zip(trials, sandbox.run([trial.job(less) for trial in trials]), strict=True):
        yield trial, [(call, outcome) for (call, _), outcome in zip(trial.pairs, report.outcomes, strict=True)]


def _raises_anyway(problem: Problem, call: Call, evidence: SolutionEvidence) -> bool:
    record = evidence.entry_point_calls
    if call.place is not Place.HARNESS or not call.expression.startswith(f"{RAISES}(") or not record:
        return False
    made = record[-1]
    parameters = parameters_of(problem.solution, problem.entry_point)
    if parameters is None:  # a decorated function, a lambda, another name of a function
        return made.answer is not None and _NOT_BOUND.match(made.answer.message) is not None
    return not fits(parameters, made.arguments)


def _can_be_changed(call: Call, evidence: SolutionEvidence) -> bool:
    record = evidence.entry_point_calls
    if call.place is not Place.HARNESS or evidence.first.value is None or evidence.second.value is None or not record:
        return False
    answers = [None if call is TOO_MANY else call.answer for call in record]
    return all(each is not None and (each.value is not None or each.items is not None) for each in answers)


def _is_same(evidence: SolutionEvidence, outcome: Outcome) -> bool:
    """Whether a case has the same value as with the solution's answers."""
    if outcome.value is None:
        return False
    expected = evidence.first.value or b""
    return expected == outcome.value or values.equal(expected, outcome.value, nan_equal=True)
