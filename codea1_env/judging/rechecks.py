"""Failures that something other than the candidate could explain are checked again before they count.

All cases of a candidate share its process, and those that are no plain calls share another one. So:

- What runs out of memory runs again alone, since earlier calls may have kept too much of it.
- What takes long runs again if the solution takes so long that more time is due (`rules.limits`).
- What was not run, because others used up the job's restarts or its time to sleep, runs again, each suite by itself.
- What fails a case that is no plain call is compared call by call (`equal_answers`): the case may tell apart answers
  that count as equal. The solution runs the same cases in the same company first.

What the judge cannot know is *doubted*, and says nothing about anyone: a case on which the solution no longer confirms
its value, because it depends on the time, on an address or on what another case has left behind; one whose harness
process has broken its channel; one that uses a result which cannot cross between processes, though it holds the right
items.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from codea1_env import values
from codea1_env.facts.outcomes import EntryPointCall, Outcome, OutcomeKind
from codea1_env.facts.submissions import RejectionReason
from codea1_env.facts.verdicts import Rechecks
from codea1_env.judging.equal_answers import answers_equal, can_be_repeated, is_equal_so_far, yields_equal_items
from codea1_env.judging.solution_values import program_job
from codea1_env.judging.value_budget import ValueBudget
from codea1_env.problems.problem import Problem
from codea1_env.rules.limits import Calibration, calibrated_cpu_s
from codea1_env.rules.ruleset import Comparison
from codea1_env.rules.validation import values_equal
from codea1_env.sandbox.interface import BROKEN_HARNESS, SLEPT, Call, Job, JobReport, Limits, Place, Sandbox

_CEILING = 8.0  # times the ordinary limit: as long as a hard question may take a candidate
# Times the ordinary limit that all calls of one candidate together may take when they run again: for lack of memory;
# for lack of time; call by call.
_MEMORY_FACTOR, _TIME_FACTOR, _REPEAT_FACTOR = 16, 32.0, 16.0
_SELF_ENDED = frozenset({OutcomeKind.VALUE, OutcomeKind.ERROR, OutcomeKind.OPAQUE})


@dataclass(frozen=True, slots=True)
class Answered:
    """What one candidate has answered."""

    problem: Problem
    program: str
    groups: tuple[tuple[Call, ...], ...]
    """What belongs together: the replayed cases, and each suite."""
    expected: Mapping[Call, bytes]
    """The solution's value for each call, in the order in which they ran."""
    outcomes: Mapping[Call, Outcome]
    """One per call."""
    budget: ValueBudget
    """For what is compared: these outcomes have been taken from it."""
    entry_point_calls: Mapping[Call, tuple[EntryPointCall, ...]] = field(default_factory=dict)
    """How harness calls have called the candidate, where that is recorded."""
    doubted: Mapping[Call, RejectionReason] = field(default_factory=dict)
    """Calls that say nothing, and why: FLAKY (the tester's fault) or UNKNOWABLE (nobody's)."""
    rechecks: Rechecks = field(default_factory=Rechecks)

    def of_kind(self, *kinds: OutcomeKind) -> list[Call]:
        """Return the calls that ended so."""
        return [call for call, outcome in self.outcomes.items() if outcome.kind in kinds]

    def failed_harness_calls(self, comparison: Comparison) -> list[Call]:
        """Return the calls, plain ones apart, whose answers are failures."""
        return [
            call
            for call, outcome in self.outcomes.items()
            if call.place is Place.HARNESS
            and outcome.kind not in (OutcomeKind.NOT_RUN, OutcomeKind.INTERNAL_ERROR)
            and (outcome.value is None or not values_equal(self.expected[call], outcome.value, comparison))
        ]

    def with_report(self, calls: Sequence[Call], report: JobReport) -> Answered:
        """Return this with the answers of another job in place of those to the same calls."""
        expected = [self.expected[call] for call in calls]
        outcomes = dict(zip(calls, self.budget.take_values(report.outcomes, expected), strict=True))
        records = dict(zip(calls, report.entry_point_calls, strict=False))
        return replace(
            self,
            outcomes={**self.outcomes, **outcomes},
            entry_point_calls={**self.entry_point_calls, **records},
            rechecks=self.rechecks.plus(rerun=len(calls)),
        )

    def affordable(self, call: Call, of_solution: Sequence[EntryPointCall]) -> Iterator[EntryPointCall]:
        """Yield how a harness call has called the candidate, beside its calls of the solution, within the budget."""
        for expected, actual in zip(of_solution, self.entry_point_calls.get(call, ()), strict=False):
            if expected.answer is not None and actual.answer is not None:
                answer = self.budget.take(actual.answer, expected.answer)
                yield actual._replace(answer=answer)
            else:
                yield actual  # TOO_MANY stays itself

    def with_doubts(self, doubted: Mapping[Call, RejectionReason]) -> Answered:
        """Return this where these calls say nothing."""
        return replace(self, doubted={**self.doubted, **doubted}, rechecks=self.rechecks.plus(doubted=len(doubted)))


@dataclass(frozen=True, slots=True)
class _Again:
    """Calls of one candidate, or of its problem's solution, once more."""

    position: int
    calls: tuple[Call, ...]
    limits: Limits
    of_solution: bool = False

    def job(self, answered: Sequence[Answered]) -> Job:
        each = answered[self.position]
        program = each.problem.solution if self.of_solution else each.program
        return program_job(each.problem, program, self.calls, self.limits)


def recheck_failures(
    answered: Sequence[Answered], sandbox: Sandbox, *, limits: Limits, comparison: Comparison
) -> list[Answered]:
    """Return the answers that count, in the order of the candidates; nothing runs if all is clear.

    Args:
        answered: of each candidate.
        sandbox: where to run again.
        limits: of candidates.
        comparison: when two values count as equal.

    Raises:
        SandboxError: the sandbox cannot be used at all.
    """
    found = _rerun(answered, sandbox, limits)
    disputes = [
        _Dispute(position, tuple(failed), tuple(each.expected))
        for position, each in enumerate(found)
        if (failed := each.failed_harness_calls(comparison))
    ]
    solutions = _run([_Again(one.position, one.company, limits, of_solution=True) for one in disputes], found, sandbox)
    repeats: list[_Repeat] = []
    for dispute, report in zip(disputes, solutions, strict=True):
        each, of_dispute = dispute.against_solution(found[dispute.position], report, comparison)
        found[dispute.position] = each
        repeats += of_dispute
    n_of = Counter(repeat.position for repeat in repeats)
    jobs = [
        repeat.job(found[repeat.position], replace(limits, job_factor=_REPEAT_FACTOR / n_of[repeat.position]))
        for repeat in repeats
    ]
    reports = sandbox.run(jobs) if jobs else []
    for repeat, report in zip(repeats, reports, strict=True):
        found[repeat.position] = repeat.judged(found[repeat.position], report, comparison)
    return found


@dataclass(frozen=True, slots=True)
class _Dispute:
    """Harness calls that one candidate has failed."""

    position: int
    failed: tuple[Call, ...]
    company: tuple[Call, ...]
    """All calls of the candidate, in their order."""

    def against_solution(
        self, each: Answered, report: JobReport, comparison: Comparison
    ) -> tuple[Answered, list[_Repeat]]:
        """Return what stands after the solution has run in the same company, and which calls are to be repeated."""
        doubted, settled = dict[Call, RejectionReason](), dict[Call, Outcome]()
        outcomes = dict(zip(self.company, report.outcomes, strict=True))
        records = dict(zip(self.company, report.entry_point_calls, strict=False))
        repeats = []
        for call in self.failed:
            expected, found, failure = each.expected[call], outcomes[call], each.outcomes[call]
            record = records.get(call, ())
            if found.kind is OutcomeKind.INTERNAL_ERROR:
                settled[call] = found
            # To the last bit, as when the suite was validated; nan is nan, whatever the comparison of answers says.
            elif found.value is None or not values.equal(expected, found.value, nan_equal=True):
                doubted[call] = RejectionReason.FLAKY
            elif failure.error_type == BROKEN_HARNESS and failure.kind is OutcomeKind.CRASHED:
                doubted[call] = RejectionReason.UNKNOWABLE
            elif failure.kind in _SELF_ENDED and can_be_repeated(record):
                or_items = failure.kind is OutcomeKind.OPAQUE
                if is_equal_so_far(record, each.affordable(call, record), comparison, or_items=or_items):
                    repeats.append(_Repeat(self.position, call, record, or_items))
        return replace(each.with_doubts(doubted), outcomes={**each.outcomes, **settled}), repeats


@dataclass(frozen=True, slots=True)
class _Repeat:
    """The calls that one case has made of the solution, for one candidate in a fresh process."""

    position: int
    call: Call
    record: tuple[EntryPointCall, ...]
    may_use_items: bool
    """Whether the candidate's own run ended because the test used a result that cannot be sent."""

    def job(self, each: Answered, limits: Limits) -> Job:
        calls = [Call(arguments=call.arguments) for call in self.record]
        return program_job(each.problem, each.program, calls, limits)

    def judged(self, each: Answered, report: JobReport, comparison: Comparison) -> Answered:
        """Return what stands after the repetition."""
        pairs = [
            (expected.answer, each.budget.take(actual, expected.answer))
            for expected, actual in zip(self.record, report.outcomes, strict=True)
            if expected.answer is not None
        ]
        ours = next((actual for _, actual in pairs if actual.kind is OutcomeKind.INTERNAL_ERROR), None)
        if ours is not None:
            return replace(each, outcomes={**each.outcomes, self.call: ours})
        different = [pair for pair in pairs if not answers_equal(*pair, comparison)]
        if not different and not self.may_use_items:
            passed = Outcome(OutcomeKind.VALUE, each.expected[self.call])
            return replace(
                each, outcomes={**each.outcomes, self.call: passed}, rechecks=each.rechecks.plus(equal_answers=1)
            )
        if self.may_use_items and all(yields_equal_items(*pair, comparison) for pair in different):
            return each.with_doubts({self.call: RejectionReason.UNKNOWABLE})
        return each


def _rerun(answered: Sequence[Answered], sandbox: Sandbox, limits: Limits) -> list[Answered]:
    """Return the answers after what ran out of memory, time or restarts has run again, within what is due to it."""
    crowded = [
        _Again(position, (question,), limits)
        for position, each in enumerate(answered)
        if len(each.outcomes) > 1
        for question in each.of_kind(OutcomeKind.MEMORY_LIMIT)[:_MEMORY_FACTOR]
    ]
    timing = [
        _Again(position, tuple(questions), limits, of_solution=True)
        for position, each in enumerate(answered)
        if (questions := each.of_kind(OutcomeKind.TIME_LIMIT, OutcomeKind.NOT_RUN))
    ]
    settled = list(answered)
    reports = _run([*crowded, *timing], answered, sandbox)
    for one, report in zip(crowded, reports, strict=False):
        settled[one.position] = settled[one.position].with_report(one.calls, report)
    late = [
        again
        for one, report in zip(timing, reports[len(crowded) :], strict=True)
        for again in _regrouped(one, report, answered[one.position], limits)
    ]
    for again, report in zip(late, _run(late, settled, sandbox), strict=True):
        settled[again.position] = settled[again.position].with_report(again.calls, report)
    return settled


def _regrouped(timed: _Again, report: JobReport, each: Answered, limits: Limits) -> Iterator[_Again]:
    """Yield what a candidate is to run again, each group by itself, with the time that its calls take the solution."""
    rule = Calibration(floor_s=limits.cpu_s, ceiling_s=limits.cpu_s * _CEILING)
    used_s = dict(zip(timed.calls, report.call_s, strict=False))
    allowed_s = {question: calibrated_cpu_s(used_s.get(question, 0.0), rule) for question in timed.calls}
    done: set[Call] = set()
    left_s = limits.cpu_s * _TIME_FACTOR
    for group in each.groups:
        asked = tuple(
            question
            for question in dict.fromkeys(group)
            if question in allowed_s
            and question not in done
            and (_lacked_company(each.outcomes[question]) or allowed_s[question] > limits.cpu_s)
        )
        done.update(asked)
        if asked:
            cpu_s = max(allowed_s[question] for question in asked)
            factor = min(limits.job_factor, len(asked), left_s / cpu_s)
            left_s -= cpu_s * factor
            if factor < 1:
                return
            # Who hangs again has had its chance.
            yield _Again(timed.position, asked, replace(limits, cpu_s=cpu_s, max_restarts=0, job_factor=factor))


def _lacked_company(outcome: Outcome) -> bool:
    """Whether it was other calls that used up the restarts or the time to sleep."""
    return outcome.kind is OutcomeKind.NOT_RUN or outcome.error_type == SLEPT


def _run(asked: Sequence[_Again], answered: Sequence[Answered], sandbox: Sandbox) -> list[JobReport]:
    return sandbox.run([again.job(answered) for again in asked]) if asked else []
