"""Equal answers, equal verdicts: no expression may tell apart what counts as equal.

`str(f(1))`, `f(1) != 0.3` and `f(1) in (0.3, 0.4)` have other values for 0.3 and for 0.30000000000000004. Under a
comparison that forgives such differences, a candidate whose answers to all calls in a case equal the solution's has
passed the case, whatever the test makes of them (method.md 2.2, D15). This can be found out where all calls in it have
literal arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from codea1_env.outcomes import Outcome, OutcomeKind
from codea1_env.problems.problem import Problem
from codea1_env.rules.replies import direct_calls_of
from codea1_env.rules.ruleset import Comparison
from codea1_env.rules.validation import values_equal
from codea1_env.sandbox.interface import Limits, Sandbox
from codea1_env.second_looks import Answered
from codea1_env.solution_values import Question, program_job

__all__ = ["credit_equal_answers"]


@dataclass(frozen=True, slots=True)
class _Appeal:
    """What one candidate fails, with the calls in it."""

    position: int
    failures: Mapping[Question, tuple[Question, ...]]

    @property
    def calls(self) -> tuple[Question, ...]:
        """All calls, each once."""
        return tuple(dict.fromkeys(chain.from_iterable(self.failures.values())))


def credit_equal_answers(
    answered: Sequence[Answered], sandbox: Sandbox, *, limits: Limits, comparison: Comparison
) -> list[Answered]:
    """Return the answers, failures that are none replaced by the expected values, in the order of the candidates.

    Args:
        answered: of each candidate.
        sandbox: where solutions and candidates are asked again; not used if nothing is forgiven or nothing failed.
        limits: of candidates.
        comparison: when two values count as the same.

    Raises:
        SandboxError: the sandbox cannot be used at all.
    """
    settled = list(answered)
    appeals = list(_appeals(answered, comparison)) if comparison.rel_tol or comparison.abs_tol else []
    jobs = [
        program_job(problem, program, appeal.calls, limits)
        for appeal in appeals
        for problem, program in _parties(answered[appeal.position])
    ]
    reports = iter(sandbox.run(jobs) if jobs else ())
    for appeal in appeals:
        outcomes = zip(next(reports).outcomes, next(reports).outcomes, strict=True)
        same = {call for call, pair in zip(appeal.calls, outcomes, strict=True) if _agree(*pair, comparison)}
        each = settled[appeal.position]
        passed = [question for question, calls in appeal.failures.items() if same.issuperset(calls)]
        right = {question: Outcome(OutcomeKind.VALUE, each.expected[question]) for question in passed}
        settled[appeal.position] = each.with_outcomes(right)
    return settled


def _appeals(answered: Sequence[Answered], comparison: Comparison) -> Iterator[_Appeal]:
    for position, each in enumerate(answered):
        failures = {
            question: calls
            for question in each.disputed(comparison)
            if question not in each.doubted and (calls := _calls_in(question, each.problem))
            if not any(_is_known_to_differ(each, call, comparison) for call in calls)
        }
        if failures:
            yield _Appeal(position, failures)


def _parties(each: Answered) -> tuple[tuple[Problem, str], tuple[Problem, str]]:
    return (each.problem, each.problem.solution), (each.problem, each.program)


def _calls_in(question: Question, problem: Problem) -> tuple[Question, ...]:
    return tuple(Question(call, (), True) for call in direct_calls_of(question.expression, problem.entry_point))


def _is_known_to_differ(each: Answered, call: Question, comparison: Comparison) -> bool:
    outcome = each.outcomes.get(call)
    return outcome is not None and not _agree(Outcome(OutcomeKind.VALUE, each.expected[call]), outcome, comparison)


def _agree(one: Outcome, other: Outcome, comparison: Comparison) -> bool:
    if one.value is None or other.value is None:
        return False
    return values_equal(one.value, other.value, comparison)
