"""Tests that test nothing: what becomes of a case when the solution's answers are changed.

A case that is no plain call is evaluated again, without any program, with the answers that the solution gave in its
first run, changed in each of `N_CHANGES` ways (`sandbox.inside.changes`). It is vacuous if it has the solution's value
under at least one change, and another value under none (`rules.validation.UnderChanges`). What raises, hangs or ends
its process says nothing, nor does a case with an answer that cannot be carried.

Where a case may look at an argument after a call, whether it does is found out likewise: it has another value, or
raises, when arguments are changed and answers are not (`UnderChanges.sees_arguments`).

A tester wrote these expressions, so they run in the sandbox, and what comes back is compared here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from codea1_env import values
from codea1_env.facts.outcomes import TOO_MANY, Outcome, OutcomeKind
from codea1_env.problems.problem import Problem
from codea1_env.rules.canonical_calls import may_see_arguments
from codea1_env.rules.validation import SolutionEvidence, UnderChanges
from codea1_env.sandbox.inside.changes import CHANGES_OF_ARGUMENTS, N_CHANGES, N_DECISIVE, NoChange
from codea1_env.sandbox.interface import Call, Harness, Job, Limits, Place, Sandbox

_CPU_S, _MAX_RESTARTS = 0.25, 3
_MAX_JOB_BYTES = 1 << 20  # of records
_ROUNDS = (range(1), range(1, N_DECISIVE), range(N_DECISIVE, N_CHANGES))  # most cases are false under the first


def under_changes(
    answered: Sequence[tuple[Problem, Mapping[Call, SolutionEvidence]]], sandbox: Sandbox, limits: Limits
) -> list[dict[Call, UnderChanges]]:
    """Return what becomes of each harness call under changed answers, as far as that can be found out.

    Args:
        answered: what the solution of each problem did.
        sandbox: where the calls are evaluated.
        limits: of solutions; each evaluation has less time.

    Returns:
        One per problem; calls are missing where nothing can be changed. A call that is false under one of the first
        changes does not meet the others.

    Raises:
        SandboxError: the sandbox cannot be used at all.
    """
    limits = replace(
        limits,
        cpu_s=min(_CPU_S, limits.cpu_s),
        max_restarts=min(_MAX_RESTARTS, limits.max_restarts),
    )
    found: list[dict[Call, UnderChanges]] = [
        {call: UnderChanges() for call, evidence in answers.items() if _can_be_changed(call, evidence)}
        for _, answers in answered
    ]
    for numbers in _ROUNDS:
        trials = [
            trial
            for position, (problem, answers) in enumerate(answered)
            for trial in _trials(position, problem, _undecided(found[position]), answers, numbers)
        ]
        _run(trials, found, answered, sandbox, limits)
    _find_blind(found, answered, sandbox, limits)
    return found


def _undecided(found: Mapping[Call, UnderChanges]) -> Iterator[Call]:
    return (call for call, so_far in found.items() if so_far.is_known and not so_far.n_false)


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
    asked: tuple[Call, ...]
    changes: range

    @property
    def pairs(self) -> list[tuple[Call, int]]:
        """Each call under each change; the changes with which a test may take long are the last."""
        return [(call, change) for change in self.changes for call in self.asked]

    def job(self, answers: Mapping[Call, SolutionEvidence], limits: Limits) -> Job:
        name, imports = self.problem.entry_point, self.problem.imports
        record_of = {call: number for number, call in enumerate(self.asked)}
        calls = tuple(
            call._replace(imports=(f"{name} = {name}.changed({record_of[call]}, {change})", *call.imports))
            for call, change in self.pairs
        )
        records = tuple(answers[call].entry_point_calls for call in self.asked)
        return Job(f"{name} = print", name, calls, "", Harness(imports, is_trusted=False, records=records), limits)


def _trials(
    position: int,
    problem: Problem,
    calls: Iterable[Call],
    answers: Mapping[Call, SolutionEvidence],
    changes: range,
) -> Iterator[_Trial]:
    """Yield the trials of some calls, none with too long records."""
    asked: list[Call] = []
    n_bytes = 0
    for call in calls:
        n_more = _record_bytes(answers[call])
        if asked and n_bytes + n_more > _MAX_JOB_BYTES:
            yield _Trial(position, problem, tuple(asked), changes)
            asked, n_bytes = [], 0
        asked.append(call)
        n_bytes += n_more
    if asked:
        yield _Trial(position, problem, tuple(asked), changes)


def _record_bytes(evidence: SolutionEvidence) -> int:
    answers = [call.answer for call in evidence.entry_point_calls if call.answer is not None]
    parts = [part for each in answers for part in (each.value, each.items, each.arguments) if part is not None]
    return sum(map(len, parts)) + sum(len(call.arguments) for call in evidence.entry_point_calls)


def _run(
    trials: Sequence[_Trial],
    found: Sequence[dict[Call, UnderChanges]],
    answered: Sequence[tuple[Problem, Mapping[Call, SolutionEvidence]]],
    sandbox: Sandbox,
    limits: Limits,
) -> None:
    """Count what the trials show; calls that were not run because others hang are tried once more, each alone."""
    alone: list[_Trial] = []
    for trial, outcomes in _reported(trials, answered, sandbox, limits):
        not_run = {call for (call, _), outcome in outcomes if outcome.kind is OutcomeKind.NOT_RUN}
        if len(trial.asked) > 1:
            alone += [replace(trial, asked=(call,)) for call in trial.asked if call in not_run]
            outcomes = [pair for pair in outcomes if pair[0][0] not in not_run]  # noqa: PLW2901
        _count(outcomes, found[trial.position], answered[trial.position][1])
    for trial, outcomes in _reported(alone, answered, sandbox, limits):
        _count(outcomes, found[trial.position], answered[trial.position][1])


def _find_blind(
    found: Sequence[dict[Call, UnderChanges]],
    answered: Sequence[tuple[Problem, Mapping[Call, SolutionEvidence]]],
    sandbox: Sandbox,
    limits: Limits,
) -> None:
    """Find the calls that can look at an argument, are not vacuous, and do not see what becomes of any."""
    trials = [
        trial
        for position, (problem, answers) in enumerate(answered)
        for trial in _trials(position, problem, _looking(found[position], answers), answers, CHANGES_OF_ARGUMENTS)
    ]
    for trial, outcomes in _reported(trials, answered, sandbox, limits):
        of_problem, answers = found[trial.position], answered[trial.position][1]
        for asked in trial.asked:
            ends = [end for (call, _), end in outcomes if call == asked and end.error_type != NoChange.__name__]
            if ends and all(_is_same(answers[asked], end) for end in ends):
                of_problem[asked] = of_problem[asked]._replace(sees_arguments=False)


def _looking(found: Mapping[Call, UnderChanges], answers: Mapping[Call, SolutionEvidence]) -> Iterator[Call]:
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
    jobs = [trial.job(answered[trial.position][1], limits) for trial in trials]
    for trial, report in zip(trials, sandbox.run(jobs) if jobs else (), strict=True):
        yield trial, list(zip(trial.pairs, report.outcomes, strict=True))


def _count(outcomes: _Outcomes, found: dict[Call, UnderChanges], answers: Mapping[Call, SolutionEvidence]) -> None:
    for (call, _), outcome in outcomes:
        if outcome.kind is OutcomeKind.INTERNAL_ERROR:
            found[call] = found[call]._replace(is_known=False)
        elif outcome.value is not None:
            so_far, is_true = found[call], _is_same(answers[call], outcome)
            found[call] = so_far._replace(n_true=so_far.n_true + is_true, n_false=so_far.n_false + (not is_true))


def _is_same(evidence: SolutionEvidence, outcome: Outcome) -> bool:
    """Whether a case has the value that it has of the solution."""
    if outcome.value is None:
        return False
    expected = evidence.first.value or b""
    return expected == outcome.value or values.equal(expected, outcome.value, nan_equal=True)
