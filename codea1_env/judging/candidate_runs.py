"""Run candidates so that neither chance, nor the order of calls, nor knowledge of the calls decides a verdict.

Under most rules the order of a candidate's calls is drawn: that of a suite, which often climbs, must not help a program
that remembers what it was asked before.

Failures that something other than the candidate could explain are rechecked before they count. All cases of a candidate
share its process, and its harness cases share another one. So:

- A call that runs out of memory runs again alone, since earlier calls may have kept too much of it.
- A call that takes too long runs again if the solution is so slow that the candidate gets more time (`judging.limits`).
- A call that was not run, because others had used up the job's restarts or its time to sleep, runs again with the other
  such calls of its suite.
- A failed harness case is compared call by call (`equal_answers`), since it may distinguish answers that count as
  equal. Before that, the solution runs all calls of the candidate in the same order.

The judge cannot decide some cases. Such an *undecided* case is not evidence about anyone: the solution no longer
confirms its value, because it depends on the time, on an address or on state that another case has left; or its harness
process has broken its channel; or it uses a result that cannot be sent between processes, though the result has the
right items.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from codea1_env import values
from codea1_env.facts.answers import Comparison, ValueBudget
from codea1_env.facts.submissions import RejectionReason
from codea1_env.facts.verdicts import EntryPointCall, Outcome, OutcomeKind, Rechecks
from codea1_env.judging.equal_answers import answers_equal, can_be_repeated, is_equal_so_far, yields_equal_items
from codea1_env.judging.jobs import Terms, program_job
from codea1_env.judging.limits import calibrated_cpu_s
from codea1_env.judging.right_answers import (
    AnsweredCalls,
    AnswerPair,
    accept_right_answers,
    judge_answers,
)
from codea1_env.problems.problem import Problem
from codea1_env.sandbox.interface import (
    BROKEN_HARNESS,
    LOADED_TOO_OFTEN,
    SLEPT,
    Call,
    Job,
    JobReport,
    Limits,
    Place,
    Sandbox,
)

_CEILING = 8.0  # times the ordinary limit: the longest limit of a single call
# Times the ordinary limit that all calls of one candidate together may take when they run again: after a lack of
# memory, after a lack of time, and one by one.
_MEMORY_FACTOR, _TIME_FACTOR, _REPEAT_FACTOR = 16, 32.0, 16.0
_SELF_ENDED = frozenset({OutcomeKind.VALUE, OutcomeKind.ERROR, OutcomeKind.OPAQUE})

Undecided: TypeAlias = Mapping[Call, RejectionReason]
"""The calls about which the judge cannot decide, each with the reason."""


@dataclass(frozen=True, slots=True)
class CandidateOutcomes:
    """The outcomes of one candidate's calls."""

    problem: Problem
    program: str
    groups: tuple[tuple[Call, ...], ...]
    """The calls of the replayed cases, then those of each suite."""
    expected: Mapping[Call, bytes]
    """The solution's value for each call, in the order in which they ran."""
    outcomes: Mapping[Call, Outcome]
    """One per call."""
    budget: ValueBudget
    """For further values to compare; these outcomes are already subtracted."""
    entry_point_calls: Mapping[Call, tuple[EntryPointCall, ...]] = field(default_factory=dict)
    """The candidate's calls that each harness call has made, where they are recorded."""
    isolates_calls: bool = False
    """Whether each call had a process of its own."""
    undecided: Undecided = field(default_factory=dict)
    """Undecided calls and the reason: FLAKY (the tester's fault) or UNKNOWABLE (nobody's fault)."""
    rechecks: Rechecks = field(default_factory=Rechecks)

    def with_report(self, calls: Sequence[Call], report: JobReport) -> CandidateOutcomes:
        """Return a copy in which the outcomes of another job replace those of the same calls."""
        expected = [self.expected[call] for call in calls]
        outcomes = dict(zip(calls, self.budget.take_values(report.outcomes, expected), strict=True))
        records = dict(zip(calls, report.entry_point_calls, strict=False))
        return replace(
            self,
            outcomes={**self.outcomes, **outcomes},
            entry_point_calls={**self.entry_point_calls, **records},
            rechecks=self.rechecks.plus(rerun=len(calls)),
        )

    def within_budget(self, call: Call, of_solution: Sequence[EntryPointCall]) -> Iterator[EntryPointCall]:
        """Yield the candidate's calls by a harness call, paired with the solution's to charge the budget."""
        for expected, actual in zip(of_solution, self.entry_point_calls.get(call, ()), strict=False):
            if expected.answer is not None and actual.answer is not None:
                answer = self.budget.take(actual.answer, expected.answer)
                yield actual._replace(answer=answer)
            else:
                yield actual  # TOO_MANY is compared by identity

    def with_undecided(self, undecided: Undecided) -> CandidateOutcomes:
        """Return a copy in which these calls are undecided."""
        return replace(
            self, undecided={**self.undecided, **undecided}, rechecks=self.rechecks.plus(undecided=len(undecided))
        )


@dataclass(frozen=True, slots=True)
class _Rerun:
    """Another run of some calls, of one candidate or of its problem's solution."""

    position: int
    calls: tuple[Call, ...]
    limits: Limits
    of_solution: bool = False

    def job(self, candidates: Sequence[CandidateOutcomes]) -> Job:
        each = candidates[self.position]
        program = each.problem.solution if self.of_solution else each.program
        job = program_job(each.problem, program, self.calls, self.limits)
        return replace(job, isolates_calls=each.isolates_calls and not self.of_solution)


def recheck_failures(candidates: Sequence[CandidateOutcomes], terms: Terms) -> list[CandidateOutcomes]:
    """Return the final outcomes, in the order of the candidates; without failures to recheck, nothing runs.

    Args:
        candidates: the outcomes of each candidate.
        terms: on which calls run again.

    Raises:
        SandboxError: the sandbox cannot be used at all.
    """
    sandbox, limits, comparison = terms.sandbox, terms.limits, terms.comparison
    checked = _rerun_starved(candidates, sandbox, limits)
    failures = list[_FailedCalls]()
    for position, each in enumerate(checked):
        unloaded = [call for call, outcome in each.outcomes.items() if _is_unloaded(outcome)]
        if unloaded:
            checked[position] = each.with_undecided(dict.fromkeys(unloaded, RejectionReason.UNKNOWABLE))
        failed = [
            call
            for call, outcome in each.outcomes.items()
            if call.place is Place.HARNESS
            and outcome.kind.is_evidence
            and (outcome.value is None or not comparison.equal(each.expected[call], outcome.value))
        ]
        if failed:
            failures.append(_FailedCalls(position, tuple(failed), tuple(each.expected)))
    if not failures:
        return checked
    solutions = _run([_Rerun(it.position, it.all_calls, limits, of_solution=True) for it in failures], checked, sandbox)
    checked = _accept_recorded(checked, failures, solutions, terms)
    repeats: list[_Repeat] = []
    for failure, report in zip(failures, solutions, strict=True):
        checked[failure.position], to_repeat = failure.against_solution(checked[failure.position], report, comparison)
        repeats += to_repeat
    n_of = Counter(repeat.position for repeat in repeats)
    jobs = [
        repeat.job(checked[repeat.position], replace(limits, job_factor=_REPEAT_FACTOR / n_of[repeat.position]))
        for repeat in repeats
    ]
    reports = sandbox.run(jobs) if jobs else []
    answered = [
        AnsweredCalls(checked[repeat.position].problem, job.calls, tuple(map(_value, repeat.record)), report)
        for repeat, job, report in zip(repeats, jobs, reports, strict=True)
    ]
    accepted = accept_right_answers(answered, terms)
    for repeat, report in zip(repeats, accepted, strict=True):
        checked[repeat.position] = repeat.judge(checked[repeat.position], report, comparison)
    return checked


def _is_unloaded(outcome: Outcome) -> bool:
    """Whether the program was not loaded for a call, since loading takes long."""
    # A program may raise an error of any name.
    return outcome.kind is OutcomeKind.NOT_RUN and outcome.error_type == LOADED_TOO_OFTEN


@dataclass(frozen=True, slots=True)
class _FailedCalls:
    """The harness calls that one candidate has failed."""

    position: int
    failed: tuple[Call, ...]
    all_calls: tuple[Call, ...]
    """All calls of the candidate, in their order."""

    def recorded_pairs(self, each: CandidateOutcomes, report: JobReport) -> Iterator[tuple[Call, int, AnswerPair]]:
        """Yield the candidate's recorded answers that differ from the solution's to the same arguments.

        Each comes with its harness call and its position in the record.
        """
        records = dict(zip(self.all_calls, report.entry_point_calls, strict=False))
        for call in self.failed:
            of_candidate = each.entry_point_calls.get(call, ())
            for position, (right, other) in enumerate(zip(records.get(call, ()), of_candidate, strict=False)):
                expected, actual = _value(right), _value(other)
                if right.arguments == other.arguments and None not in (expected, actual) and expected != actual:
                    yield call, position, AnswerPair(right.arguments, expected or b"", actual or b"")

    def against_solution(
        self, each: CandidateOutcomes, report: JobReport, comparison: Comparison
    ) -> tuple[CandidateOutcomes, list[_Repeat]]:
        """Return the outcomes after the solution has run the same calls, and the calls to repeat one by one."""
        undecided, internal_errors = dict[Call, RejectionReason](), dict[Call, Outcome]()
        outcomes = dict(zip(self.all_calls, report.outcomes, strict=True))
        records = dict(zip(self.all_calls, report.entry_point_calls, strict=False))
        repeats = []
        for call in self.failed:
            expected, of_solution, failure = each.expected[call], outcomes[call], each.outcomes[call]
            record = records.get(call, ())
            if of_solution.kind is OutcomeKind.INTERNAL_ERROR:
                internal_errors[call] = of_solution
            # Floats agree to the last bit, as in the suite's validation; nan equals nan under every comparison.
            elif of_solution.value is None or not values.equal(expected, of_solution.value, nan_equal=True):
                undecided[call] = RejectionReason.FLAKY
            elif failure.error_type == BROKEN_HARNESS and failure.kind is OutcomeKind.CRASHED:
                undecided[call] = RejectionReason.UNKNOWABLE
            elif failure.kind in _SELF_ENDED and can_be_repeated(record):
                or_items = failure.kind is OutcomeKind.OPAQUE and bool(failure.error_type)  # else its value is opaque
                if is_equal_so_far(record, each.within_budget(call, record), comparison, or_items=or_items):
                    repeats.append(_Repeat(self.position, call, record, or_items))
        return replace(each.with_undecided(undecided), outcomes={**each.outcomes, **internal_errors}), repeats


@dataclass(frozen=True, slots=True)
class _Repeat:
    """The calls that one case makes of the solution, to be repeated by one candidate in a fresh process."""

    position: int
    call: Call
    record: tuple[EntryPointCall, ...]
    may_use_items: bool
    """Whether the candidate's own run ended because the test used a result that cannot be sent."""

    def job(self, each: CandidateOutcomes, limits: Limits) -> Job:
        calls = [Call(arguments=call.arguments) for call in self.record]
        return program_job(each.problem, each.program, calls, limits)

    def judge(self, each: CandidateOutcomes, report: JobReport, comparison: Comparison) -> CandidateOutcomes:
        """Return the outcomes after the repetition."""
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
            return each.with_undecided({self.call: RejectionReason.UNKNOWABLE})
        return each


def _accept_recorded(
    candidates: Sequence[CandidateOutcomes],
    failures: Sequence[_FailedCalls],
    solutions: Sequence[JobReport],
    terms: Terms,
) -> list[CandidateOutcomes]:
    """Put the solution's answer in place of each other right one in the records of the failed calls.

    A failed call with an answer on which a checker fails is an INTERNAL_ERROR.
    """
    accepted = list(candidates)
    chosen = [
        (failure, list(failure.recorded_pairs(candidates[failure.position], report)))
        for failure, report in zip(failures, solutions, strict=True)
        if candidates[failure.position].problem.answers.accepts_others
    ]
    questions = [(accepted[failure.position].problem, [pair for *_, pair in pairs]) for failure, pairs in chosen]
    judged = judge_answers(questions, terms)
    for (failure, pairs), outcomes in zip(chosen, judged, strict=True):
        each = accepted[failure.position]
        records = {call: list(each.entry_point_calls.get(call, ())) for call in failure.failed}
        of_calls = dict(each.outcomes)
        for (call, position, _), outcome in zip(pairs, outcomes, strict=True):
            if outcome.kind is OutcomeKind.INTERNAL_ERROR:
                of_calls[call] = outcome
            before = records[call][position].answer
            answer = outcome if before is None else replace(outcome, arguments=before.arguments)
            records[call][position] = records[call][position]._replace(answer=answer)
        known = {**each.entry_point_calls, **{call: tuple(record) for call, record in records.items()}}
        accepted[failure.position] = replace(each, entry_point_calls=known, outcomes=of_calls)
    return accepted


def _value(call: EntryPointCall) -> bytes | None:
    return call.answer.value if call.answer is not None else None


def _rerun_starved(
    candidates: Sequence[CandidateOutcomes], sandbox: Sandbox, limits: Limits
) -> list[CandidateOutcomes]:
    """Run calls again that ran out of memory, time or restarts, within their limits."""
    out_of_memory, timed_solutions = list[_Rerun](), list[_Rerun]()
    for position, each in enumerate(candidates):
        full, late = list[Call](), list[Call]()
        for call, outcome in each.outcomes.items():
            if outcome.kind is OutcomeKind.MEMORY_LIMIT:
                full.append(call)
            elif outcome.kind is OutcomeKind.TIME_LIMIT or (
                outcome.kind is OutcomeKind.NOT_RUN and not _is_unloaded(outcome)
            ):
                late.append(call)
        if len(each.outcomes) > 1:
            out_of_memory += [_Rerun(position, (call,), limits) for call in full[:_MEMORY_FACTOR]]
        if late:
            timed_solutions.append(_Rerun(position, tuple(late), limits, of_solution=True))
    after = list(candidates)
    reports = _run([*out_of_memory, *timed_solutions], candidates, sandbox)
    for rerun, report in zip(out_of_memory, reports, strict=False):
        after[rerun.position] = after[rerun.position].with_report(rerun.calls, report)
    out_of_time = [
        rerun
        for timed, report in zip(timed_solutions, reports[len(out_of_memory) :], strict=True)
        for rerun in _regroup(timed, report, candidates[timed.position], limits)
    ]
    for rerun, report in zip(out_of_time, _run(out_of_time, after, sandbox), strict=True):
        after[rerun.position] = after[rerun.position].with_report(rerun.calls, report)
    return after


def _regroup(timed: _Rerun, report: JobReport, each: CandidateOutcomes, limits: Limits) -> Iterator[_Rerun]:
    """Yield the calls that a candidate runs again, each group by itself, with limits that follow the solution's
    time."""
    used_s = dict(zip(timed.calls, report.call_s, strict=False))
    bounds = {"floor_s": limits.cpu_s, "ceiling_s": limits.cpu_s * _CEILING}
    allowed_s = {call: calibrated_cpu_s(used_s.get(call, 0.0), **bounds) for call in timed.calls}
    done: set[Call] = set()
    left_s = limits.cpu_s * _TIME_FACTOR
    for group in each.groups:
        calls = tuple(
            call
            for call in dict.fromkeys(group)
            if call in allowed_s
            and call not in done
            and (  # other calls had used up the restarts or the time to sleep, or the solution is slow, too
                each.outcomes[call].kind is OutcomeKind.NOT_RUN
                or each.outcomes[call].error_type == SLEPT
                or allowed_s[call] > limits.cpu_s
            )
        )
        done.update(calls)
        if calls:
            cpu_s = max(allowed_s[call] for call in calls)
            factor = min(limits.job_factor, len(calls), left_s / cpu_s)
            left_s -= cpu_s * factor
            if factor < 1:
                return
            # No restarts: a call that hangs again has failed.
            yield _Rerun(timed.position, calls, replace(limits, cpu_s=cpu_s, max_restarts=0, job_factor=factor))


def _run(reruns: Sequence[_Rerun], candidates: Sequence[CandidateOutcomes], sandbox: Sandbox) -> list[JobReport]:
    return sandbox.run([rerun.job(candidates) for rerun in reruns]) if reruns else []


def reload_without_calls(jobs: Sequence[Job], reports: Sequence[JobReport], sandbox: Sandbox) -> list[JobReport]:
    """Return the reports, where a program that loads only without calls has failed its calls.

    Otherwise a candidate could pose as one that does not load whenever it expects to fail.

    Args:
        jobs: one per candidate, with all of its calls.
        reports: on these jobs.
        sandbox: where programs that did not load run again, without their calls.

    Raises:
        SandboxError: the sandbox cannot be used at all.
    """
    loaded = list(reports)
    faults = [
        position
        for position, report in enumerate(reports)
        if jobs[position].calls and not report.loaded and report.load.kind is not OutcomeKind.INTERNAL_ERROR
    ]
    alone = sandbox.run([replace(jobs[position], calls=()) for position in faults]) if faults else []
    for position, report in zip(faults, alone, strict=True):
        if report.loaded:
            failure = loaded[position].load
            loaded[position] = replace(
                loaded[position], load=report.load, outcomes=(failure,) * len(loaded[position].outcomes)
            )
    return loaded


def drawn_order(program: str, calls: Sequence[str]) -> tuple[int, ...]:
    """Return the order of a program's calls, as positions. A hash decides, of which the program knows only a part.

    Args:
        program: source of the candidate.
        calls: all of its calls, as texts.
    """
    texts = "\0".join(("0", program, *calls)).encode("utf-8", "surrogatepass")  # "0": as it has always been
    keys = hashlib.shake_128(texts).digest(8 * len(calls))
    return tuple(sorted(range(len(calls)), key=lambda position: keys[8 * position : 8 * position + 8]))
