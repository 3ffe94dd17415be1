"""A second look at what counts against a candidate, where the fault may be someone else's.

All cases of a candidate share its process, and those that are no plain calls share another one. Three kinds of failure
prove nothing yet:

- Memory that earlier calls have kept leaves too little for a later one. What runs out of memory is asked again, alone.
- An expression that depends on the time, on an address, or on what another one has left in their process says something
  new on every occasion. Where a candidate fails such a case, the solution is asked the same questions in the same
  company: if it does not confirm its own value, the case is *doubted*, and says nothing about anyone.
- What takes long may be a hard question. The solution is asked how long it takes, and the candidate once more, alone,
  if that entitles it to more time (`rules.limits`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from codea1_env import values
from codea1_env.outcomes import Outcome, OutcomeKind
from codea1_env.problems.problem import Problem
from codea1_env.rules.limits import Calibration, calibrated_cpu_s
from codea1_env.rules.ruleset import Comparison
from codea1_env.rules.validation import values_equal
from codea1_env.sandbox.interface import Job, JobReport, Limits, Sandbox
from codea1_env.solution_values import Question, program_job

__all__ = ["Answered", "look_again"]


@dataclass(frozen=True, slots=True)
class Answered:
    """What one candidate has answered."""

    problem: Problem
    program: str
    expected: Mapping[Question, bytes]
    """The solution's value for each question, in the order in which they were put."""
    outcomes: Mapping[Question, Outcome]
    """One per question."""
    doubted: frozenset[Question] = frozenset()
    """Questions on which the solution disagrees with itself."""

    def of_kind(self, kind: OutcomeKind) -> list[Question]:
        """Return the questions that ended so."""
        return [question for question, outcome in self.outcomes.items() if outcome.kind is kind]

    def disputed(self, comparison: Comparison) -> list[Question]:
        """Return the questions, plain calls apart, whose answers are failures."""
        return [
            question
            for question, outcome in self.outcomes.items()
            if not question.direct
            and outcome.kind not in (OutcomeKind.NOT_RUN, OutcomeKind.INTERNAL_ERROR)
            and (outcome.value is None or not values_equal(self.expected[question], outcome.value, comparison))
        ]

    def with_outcomes(self, outcomes: Mapping[Question, Outcome]) -> Answered:
        """Return this with some answers replaced."""
        return replace(self, outcomes={**self.outcomes, **outcomes})

    def after_dispute(self, confirmed: Mapping[Question, Outcome]) -> Answered:
        """Return this in the light of what the solution says in the same company."""
        ours = {question: found for question, found in confirmed.items() if found.kind is OutcomeKind.INTERNAL_ERROR}
        doubted = {
            question
            for question, found in confirmed.items()
            # To the last bit, as when the suite was validated; nan is nan, whatever the comparison of answers says.
            if question not in ours
            and (found.value is None or not values.equal(self.expected[question], found.value, nan_equal=True))
        }
        return replace(self.with_outcomes(ours), doubted=frozenset(doubted))


@dataclass(frozen=True, slots=True)
class _Alone:
    """One question for one candidate, without the others."""

    position: int
    question: Question
    limits: Limits

    def job(self, answered: Sequence[Answered]) -> Job:
        each = answered[self.position]
        return program_job(each.problem, each.program, (self.question,), self.limits)


@dataclass(frozen=True, slots=True)
class _Solution:
    """Questions of one candidate for the solution."""

    position: int
    asked: tuple[Question, ...]
    at_issue: frozenset[Question]

    def job(self, answered: Sequence[Answered], limits: Limits) -> Job:
        problem = answered[self.position].problem
        return program_job(problem, problem.solution, self.asked, limits)


def look_again(
    answered: Sequence[Answered], sandbox: Sandbox, *, limits: Limits, comparison: Comparison
) -> list[Answered]:
    """Return the answers that count, in the order of the candidates; the sandbox is not asked if all is clear.

    Args:
        answered: of each candidate.
        sandbox: where to ask again.
        limits: of candidates.
        comparison: when two values count as the same.

    Raises:
        SandboxError: the sandbox cannot be used at all.
    """
    crowded = [
        _Alone(position, question, limits)
        for position, each in enumerate(answered)
        if len(each.outcomes) > 1
        for question in each.of_kind(OutcomeKind.MEMORY_LIMIT)
    ]
    disputes = [
        _Solution(position, tuple(each.expected), frozenset(questions))
        for position, each in enumerate(answered)
        if (questions := each.disputed(comparison))
    ]
    slow = [
        _Solution(position, tuple(questions), frozenset(questions))
        for position, each in enumerate(answered)
        if (questions := each.of_kind(OutcomeKind.TIME_LIMIT))
    ]
    jobs = [*(one.job(answered) for one in crowded), *(one.job(answered, limits) for one in (*disputes, *slow))]
    reports = iter(sandbox.run(jobs) if jobs else ())
    settled = list(answered)
    for one in crowded:
        settled[one.position] = settled[one.position].with_outcomes({one.question: next(reports).outcomes[0]})
    for dispute in disputes:
        found = zip(dispute.asked, next(reports).outcomes, strict=True)
        confirmed = {question: outcome for question, outcome in found if question in dispute.at_issue}
        settled[dispute.position] = settled[dispute.position].after_dispute(confirmed)
    appeals = [appeal for one, report in zip(slow, reports, strict=True) for appeal in _appeals(one, report, limits)]
    return _with_more_time(settled, appeals, sandbox)


def _appeals(slow: _Solution, report: JobReport, limits: Limits) -> list[_Alone]:
    """Return the questions that deserve more time than the candidate had."""
    rule = Calibration(floor_s=limits.cpu_s, ceiling_s=limits.cpu_s * 16)
    allowed = {
        question: calibrated_cpu_s(used_s, rule) for question, used_s in zip(slow.asked, report.call_s, strict=False)
    }
    return [
        _Alone(slow.position, question, replace(limits, cpu_s=cpu_s))
        for question, cpu_s in allowed.items()
        if cpu_s > limits.cpu_s
    ]


def _with_more_time(answered: list[Answered], appeals: Sequence[_Alone], sandbox: Sandbox) -> list[Answered]:
    reports = sandbox.run([appeal.job(answered) for appeal in appeals]) if appeals else []
    for appeal, report in zip(appeals, reports, strict=True):
        each = answered[appeal.position]
        if appeal.question not in each.doubted:
            answered[appeal.position] = each.with_outcomes({appeal.question: report.outcomes[0]})
    return answered
