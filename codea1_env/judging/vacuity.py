"""Vacuous cases: evaluate each case again under changed answers of the solution.

A case that is not direct is evaluated again, without any program. It gets the answers of the solution's first run,
changed in each of `N_CHANGES` ways (`sandbox.inside.changes`). The case is vacuous if it keeps the solution's value
under at least one change and has another value under none (`rules.validation.ChangeEvidence`). An evaluation that
raises, hangs or ends its process is not evidence. A case with an answer that cannot be sent between processes is
skipped.

A case that expects an exception is false whenever the entry point answers, so no answer needs to be changed. It is
vacuous if the arguments do not fit the solution's parameters: then Python raises TypeError before any program begins.

The same method shows whether a case that may read an argument after a call does so: it has another value, or raises,
when the arguments are changed and the answers are not (`ChangeEvidence.sees_arguments`).

Testers write these expressions, so they run in the sandbox, and this module compares the values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from codea1_env import values
from codea1_env.facts.entry_points import placeholder_program, read_entry_point
from codea1_env.facts.verdicts import TOO_MANY, Outcome, OutcomeKind
from codea1_env.problems.problem import Problem
from codea1_env.rules.canonical_calls import fits, may_see_arguments, parameters_of
from codea1_env.rules.reading.frameworks import RAISES
from codea1_env.rules.reading.function_calls import source_calls, with_source_calls
from codea1_env.rules.validation import ChangeEvidence, SolutionEvidence
from codea1_env.sandbox.inside.changes import (
    CHANGES_OF_ARGUMENTS,
    N_CHANGES,
    N_CHANGES_IN_PLACE,
    N_DECISIVE,
    NoChange,
)
from codea1_env.sandbox.interface import Call, Harness, Job, Limits, Place, Sandbox


def sent_calls(problem: Problem, calls: tuple[Call, ...]) -> tuple[Call, ...]:
    """Return calls as they are sent; those of most problems are sent as they are."""
    return tuple(_sent(call, problem.entry_point) for call in calls) if problem.calls.functions else calls


def sent_texts(problem: Problem, calls: tuple[Call, ...]) -> frozenset[str]:
    """Return the texts that the harness of these calls may send (`Harness.source_calls`)."""
    in_harness = [call for call in calls if problem.calls.functions and _is_text(call)]
    texts = (source_calls(call.expression, call.imports, problem.entry_point) for call in in_harness)
    return frozenset[str]().union(*texts)


def _is_text(call: Call) -> bool:
    return call.place is Place.HARNESS and not call.arguments


def _sent(call: Call, entry_point: str) -> Call:
    if not _is_text(call):
        return call
    return call._replace(expression=with_source_calls(call.expression, call.imports, entry_point))


_CPU_S, _MAX_RESTARTS = 0.25, 3
_MAX_JOB_BYTES = 1 << 20  # of records
_NOT_BOUND = re.compile(r"[\w.<>]+\(\) (?:missing|takes|got) ")
"""How messages begin by which Python says that arguments do not fit."""
_ROUNDS = (range(1), range(1, N_DECISIVE), range(N_DECISIVE, N_CHANGES))  # most cases are false under the first


def change_evidence(
    answered: Sequence[tuple[Problem, Mapping[Call, SolutionEvidence]]], sandbox: Sandbox, limits: Limits
) -> list[dict[Call, ChangeEvidence]]:
    """Return the values of each harness call under changed answers.

    Args:
        answered: each problem with its solution's outcomes by call.
        sandbox: where the calls are evaluated.
        limits: what a solution may use; each evaluation gets less time.

    Returns:
        One mapping per problem, without the calls whose answers cannot be changed. A call that is false under one of
        the first changes is not evaluated under the others.

    Raises:
        SandboxError: the sandbox cannot be used at all.
    """
    found: list[dict[Call, ChangeEvidence]] = [
        {call: ChangeEvidence() for call, evidence in answers.items() if _can_be_changed(call, evidence)}
        for _, answers in answered
    ]
    for numbers in _ROUNDS:
        trials = [
            trial
            for position, (problem, answers) in enumerate(answered)
            for trial in _trials(position, problem, _undecided(found[position]), answers, numbers)
        ]
        _run(trials, found, answered, sandbox, limits)
    _find_argument_blind(found, answered, sandbox, limits)
    for of_problem, (problem, answers) in zip(found, answered, strict=True):
        of_problem.update(
            {call: ChangeEvidence(n_true=1) for call, each in answers.items() if _raises_anyway(problem, call, each)}
        )
    return found


def _undecided(found: Mapping[Call, ChangeEvidence]) -> Iterator[Call]:
    return (call for call, so_far in found.items() if so_far.is_known and not so_far.n_false)


def _raises_anyway(problem: Problem, call: Call, evidence: SolutionEvidence) -> bool:
    if (
        call.place is not Place.HARNESS
        or not call.expression.startswith(f"{RAISES}(")
        or not evidence.entry_point_calls
    ):
        return False
    made = evidence.entry_point_calls[-1]
    parameters = parameters_of(problem.solution, problem.entry_point)
    if parameters is None:  # a decorated function, a lambda, another name of a function
        return made.answer is not None and _NOT_BOUND.match(made.answer.message) is not None
    return not fits(parameters, made.arguments)


def _can_be_changed(call: Call, evidence: SolutionEvidence) -> bool:
    record = evidence.entry_point_calls
    if call.place is not Place.HARNESS or evidence.first.value is None or evidence.second.value is None or not record:
        return False
    return all(each is not TOO_MANY and _is_plain(each.answer) for each in record)


def _is_plain(answer: Outcome | None) -> bool:
    return answer is not None and (answer.value is not None or answer.items is not None)


@dataclass(frozen=True, slots=True)
class _Trial:
    """Some calls of one problem under some changes."""

    position: int
    problem: Problem
    calls: tuple[Call, ...]
    changes: range

    @property
    def pairs(self) -> list[tuple[Call, int]]:
        """Each call with each change; the changes that may slow a test down come last."""
        return [(call, change) for change in self.changes for call in self.calls]

    def job(self, answers: Mapping[Call, SolutionEvidence], limits: Limits) -> Job:
        entry_point, imports = self.problem.entry_point, self.problem.imports
        name = read_entry_point(entry_point).name
        record_of = {call: number for number, call in enumerate(self.calls)}
        sent = dict(zip(self.calls, sent_calls(self.problem, self.calls), strict=True))
        calls = tuple(
            sent[call]._replace(imports=(f"{name} = {name}.changed({record_of[call]}, {change})", *call.imports))
            for call, change in self.pairs
        )
        records = tuple(answers[call].entry_point_calls for call in self.calls)
        program, harness = placeholder_program(entry_point), Harness(imports, is_trusted=False, records=records)
        return Job(program, entry_point, calls, "", harness, limits, self.problem.script)


def _trials(
    position: int, problem: Problem, calls: Iterable[Call], answers: Mapping[Call, SolutionEvidence], changes: range
) -> Iterator[_Trial]:
    """Yield the trials of some calls; the records of each trial are limited to `_MAX_JOB_BYTES`."""
    if problem.calls.in_place and changes.stop == N_CHANGES:
        changes = range(changes.start, N_CHANGES_IN_PLACE)
    batch: list[Call] = []
    n_bytes = 0
    for call in calls:
        n_more = _record_bytes(answers[call])
        if batch and n_bytes + n_more > _MAX_JOB_BYTES:
            yield _Trial(position, problem, tuple(batch), changes)
            batch, n_bytes = [], 0
        batch.append(call)
        n_bytes += n_more
    if batch:
        yield _Trial(position, problem, tuple(batch), changes)


def _record_bytes(evidence: SolutionEvidence) -> int:
    answers = [call.answer for call in evidence.entry_point_calls if call.answer is not None]
    parts = [part for each in answers for part in (each.value, each.items, each.arguments) if part is not None]
    return sum(map(len, parts)) + sum(len(call.arguments) for call in evidence.entry_point_calls)


def _run(
    trials: Sequence[_Trial],
    found: Sequence[dict[Call, ChangeEvidence]],
    answered: Sequence[tuple[Problem, Mapping[Call, SolutionEvidence]]],
    sandbox: Sandbox,
    limits: Limits,
) -> None:
    """Run the trials and count their outcomes; calls that were not run because others hang run once more, each
    alone."""
    alone: list[_Trial] = []
    for trial, outcomes in _reported(trials, answered, sandbox, limits):
        not_run = {call for (call, _), outcome in outcomes if outcome.kind is OutcomeKind.NOT_RUN}
        if len(trial.calls) > 1:
            alone += [replace(trial, calls=(call,)) for call in trial.calls if call in not_run]
            outcomes = [pair for pair in outcomes if pair[0][0] not in not_run]  # noqa: PLW2901
        _count(outcomes, found[trial.position], answered[trial.position][1])
    for trial, outcomes in _reported(alone, answered, sandbox, limits):
        _count(outcomes, found[trial.position], answered[trial.position][1])


def _find_argument_blind(
    found: Sequence[dict[Call, ChangeEvidence]],
    answered: Sequence[tuple[Problem, Mapping[Call, SolutionEvidence]]],
    sandbox: Sandbox,
    limits: Limits,
) -> None:
    """Find the calls that may read an argument, are not vacuous, and do not depend on the changes of any argument."""
    trials = [
        trial
        for position, (problem, answers) in enumerate(answered)
        for trial in _trials(
            position, problem, _may_read_arguments(found[position], answers), answers, CHANGES_OF_ARGUMENTS
        )
    ]
    for trial, outcomes in _reported(trials, answered, sandbox, limits):
        of_problem, answers = found[trial.position], answered[trial.position][1]
        for call in trial.calls:
            found_values = [each for (of, _), each in outcomes if of == call and each.error_type != NoChange.__name__]
            if found_values and all(_is_same(answers[call], each) for each in found_values):
                of_problem[call] = of_problem[call]._replace(sees_arguments=False)


def _may_read_arguments(
    found: Mapping[Call, ChangeEvidence], answers: Mapping[Call, SolutionEvidence]
) -> Iterator[Call]:
    for call, so_far in found.items():
        if so_far.n_false and may_see_arguments(call.expression, answers[call].entry_point_calls):
            yield call


_Outcomes = list[tuple[tuple[Call, int], Outcome]]


def _reported(
    trials: Sequence[_Trial],
    answered: Sequence[tuple[Problem, Mapping[Call, SolutionEvidence]]],
    sandbox: Sandbox,
    limits: Limits,
) -> Iterator[tuple[_Trial, _Outcomes]]:
    if not trials:
        return
    less = replace(limits, cpu_s=min(_CPU_S, limits.cpu_s), max_restarts=min(_MAX_RESTARTS, limits.max_restarts))
    jobs = [trial.job(answered[trial.position][1], less) for trial in trials]
    for trial, report in zip(trials, sandbox.run(jobs), strict=True):
        yield trial, list(zip(trial.pairs, report.outcomes, strict=True))


def _count(outcomes: _Outcomes, found: dict[Call, ChangeEvidence], answers: Mapping[Call, SolutionEvidence]) -> None:
    for (call, _), outcome in outcomes:
        if outcome.kind is OutcomeKind.INTERNAL_ERROR:
            found[call] = found[call]._replace(is_known=False)
        elif outcome.value is not None:
            so_far, is_true = found[call], _is_same(answers[call], outcome)
            found[call] = so_far._replace(n_true=so_far.n_true + is_true, n_false=so_far.n_false + (not is_true))


def _is_same(evidence: SolutionEvidence, outcome: Outcome) -> bool:
    """Whether a case has the same value as with the solution's answers."""
    if outcome.value is None:
        return False
    expected = evidence.first.value or b""
    return expected == outcome.value or values.equal(expected, outcome.value, nan_equal=True)
