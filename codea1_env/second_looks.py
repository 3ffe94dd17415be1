"""A second look at what counts against a candidate, where the fault may be someone else's.

All cases of a candidate share its process, and those that are no plain calls share another one. So a failure proves
nothing yet where one of these could explain it:

- Memory that earlier calls have kept leaves too little for a later one. What runs out of memory is asked again, alone.
- What takes long may be a hard question. The solution is asked how long it takes, and the candidate once more if that
  entitles it to more time (`rules.limits`).
- Calls that hang end a job before the rest of it is asked. The rest is asked again, each suite by itself, so that no
  tester's inputs cost another one's suite its answers.
- An expression that depends on the time, on an address, or on what another one has left in their process says something
  new on every occasion. Where a candidate fails such a case, the solution is asked the same questions in the same
  company: if it does not confirm its own value, the case is *doubted*, and says nothing about anyone.
- An expression may tell apart answers that count as equal (`equal_answers`): then the case is passed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from codea1_env import values
from codea1_env.equal_answers import equal_answers
from codea1_env.outcomes import Outcome, OutcomeKind
from codea1_env.problems.problem import Problem
from codea1_env.rules.limits import Calibration, calibrated_cpu_s
from codea1_env.rules.ruleset import Comparison
from codea1_env.rules.validation import values_equal
from codea1_env.sandbox.interface import Applied, Call, Job, JobReport, Limits, Place, Sandbox
from codea1_env.solution_values import program_job

__all__ = ["Answered", "look_again"]

_CEILING = 8.0  # times the ordinary limit: as long as a hard question may take a candidate


@dataclass(frozen=True, slots=True)
class Answered:
    """What one candidate has answered."""

    problem: Problem
    program: str
    groups: tuple[tuple[Call, ...], ...]
    """What belongs together: the replayed cases, and each suite."""
    expected: Mapping[Call, bytes]
    """The solution's value for each question, in the order in which they were put."""
    outcomes: Mapping[Call, Outcome]
    """One per question."""
    applied: Mapping[Call, tuple[Applied, ...]] = field(default_factory=dict)
    """How tests have used the candidate, where that is known."""
    doubted: frozenset[Call] = frozenset()
    """Questions on which the solution disagrees with itself."""

    def of_kind(self, *kinds: OutcomeKind) -> list[Call]:
        """Return the questions that ended so."""
        return [question for question, outcome in self.outcomes.items() if outcome.kind in kinds]

    def disputed(self, comparison: Comparison) -> list[Call]:
        """Return the questions, plain calls apart, whose answers are failures."""
        return [
            question
            for question, outcome in self.outcomes.items()
            if question.place is Place.HARNESS
            and outcome.kind not in (OutcomeKind.NOT_RUN, OutcomeKind.INTERNAL_ERROR)
            and (outcome.value is None or not values_equal(self.expected[question], outcome.value, comparison))
        ]

    def with_report(self, asked: Sequence[Call], report: JobReport) -> Answered:
        """Return this with the answers of another job in place of those to the same questions."""
        outcomes = dict(zip(asked, report.outcomes, strict=True))
        applied = dict(zip(asked, report.applied, strict=False))
        return replace(self, outcomes={**self.outcomes, **outcomes}, applied={**self.applied, **applied})

    def after_dispute(self, at_issue: Collection[Call], report: JobReport, comparison: Comparison) -> Answered:
        """Return this in the light of what the solution says in the same company."""
        doubted, settled = set[Call](), dict[Call, Outcome]()
        applied = dict(zip(self.expected, report.applied, strict=False))
        for question, found in zip(self.expected, report.outcomes, strict=True):
            if question not in at_issue:
                continue
            expected = self.expected[question]
            if found.kind is OutcomeKind.INTERNAL_ERROR:
                settled[question] = found
            # To the last bit, as when the suite was validated; nan is nan, whatever the comparison of answers says.
            elif found.value is None or not values.equal(expected, found.value, nan_equal=True):
                doubted.add(question)
            elif equal_answers(self.applied.get(question, ()), applied.get(question, ()), comparison):
                settled[question] = Outcome(OutcomeKind.VALUE, expected)
        return replace(self, outcomes={**self.outcomes, **settled}, doubted=frozenset(doubted))


@dataclass(frozen=True, slots=True)
class _Again:
    """Questions for one candidate, or for its problem's solution, once more."""

    position: int
    asked: tuple[Call, ...]
    limits: Limits
    of_solution: bool = False

    def job(self, answered: Sequence[Answered]) -> Job:
        each = answered[self.position]
        program = each.problem.solution if self.of_solution else each.program
        return program_job(each.problem, program, self.asked, self.limits)


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
    heard = _heard_out(answered, sandbox, limits)
    disputes = [
        (_Again(position, tuple(each.expected), limits, of_solution=True), frozenset(questions))
        for position, each in enumerate(heard)
        if (questions := each.disputed(comparison))
    ]
    reports = _run([dispute for dispute, _ in disputes], heard, sandbox)
    for (dispute, at_issue), report in zip(disputes, reports, strict=True):
        heard[dispute.position] = heard[dispute.position].after_dispute(at_issue, report, comparison)
    return heard


def _heard_out(answered: Sequence[Answered], sandbox: Sandbox, limits: Limits) -> list[Answered]:
    """Return the answers after everybody had the memory, the time and the hearing that they are entitled to."""
    crowded = [
        _Again(position, (question,), limits)
        for position, each in enumerate(answered)
        if len(each.outcomes) > 1
        for question in each.of_kind(OutcomeKind.MEMORY_LIMIT)
    ]
    timing = [
        _Again(position, tuple(questions), limits, of_solution=True)
        for position, each in enumerate(answered)
        if (questions := each.of_kind(OutcomeKind.TIME_LIMIT, OutcomeKind.NOT_RUN))
    ]
    settled = list(answered)
    reports = _run([*crowded, *timing], answered, sandbox)
    for one, report in zip(crowded, reports, strict=False):
        settled[one.position] = settled[one.position].with_report(one.asked, report)
    late = [
        again
        for one, report in zip(timing, reports[len(crowded) :], strict=True)
        for again in _regrouped(one, report, answered[one.position], limits)
    ]
    for again, report in zip(late, _run(late, settled, sandbox), strict=True):
        settled[again.position] = settled[again.position].with_report(again.asked, report)
    return settled


def _regrouped(timed: _Again, report: JobReport, each: Answered, limits: Limits) -> Iterator[_Again]:
    """Yield what to ask a candidate again, each group by itself, with the time that its questions take."""
    rule = Calibration(floor_s=limits.cpu_s, ceiling_s=limits.cpu_s * _CEILING)
    used_s = dict(zip(timed.asked, report.call_s, strict=False))
    allowed_s = {question: calibrated_cpu_s(used_s.get(question, 0.0), rule) for question in timed.asked}
    done: set[Call] = set()
    for group in each.groups:
        asked = tuple(
            question
            for question in dict.fromkeys(group)
            if question in allowed_s
            and question not in done
            and (each.outcomes[question].kind is OutcomeKind.NOT_RUN or allowed_s[question] > limits.cpu_s)
        )
        done.update(asked)
        if asked:
            cpu_s = max(allowed_s[question] for question in asked)
            # Who hangs again has had its chance.
            yield _Again(timed.position, asked, replace(limits, cpu_s=cpu_s, max_restarts=0))


def _run(asked: Sequence[_Again], answered: Sequence[Answered], sandbox: Sandbox) -> list[JobReport]:
    return sandbox.run([again.job(answered) for again in asked]) if asked else []
