"""Run candidates so that neither chance, nor the order of calls, nor knowledge of the calls decides a verdict.

Some candidates run twice, in two orders and processes. A right answer must depend neither on chance nor on the order
of the calls, and the order of a suite, which often climbs from one case to the next, must not help a program that
remembers what it was asked before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeVar

from codea1_env.facts.outcomes import Outcome, OutcomeKind
from codea1_env.judging.right_answers import AnsweredCalls, accept_right_answers
from codea1_env.rules.ruleset import Comparison, Ruleset
from codea1_env.rules.validation import values_agree
from codea1_env.sandbox.interface import Job, JobReport, Limits, Sandbox

_T = TypeVar("_T")
_BITS = 64


def run_candidates(
    jobs: Sequence[Job],
    others: Sequence[Job],
    answered: Sequence[Callable[[JobReport], AnsweredCalls]],
    sandbox: Sandbox,
    limits: Limits,
    rules: Ruleset,
) -> list[JobReport]:
    """Run all jobs together; return a report per candidate's job, then one per other job.

    Args:
        jobs: one per candidate, with all of its calls.
        others: further jobs, which run once.
        answered: one per candidate: pairs the answers in a report with the solution's. Other right ones are replaced
            by them (`right_answers`) before the reports of two runs are combined.
        sandbox: where all of them run.
        limits: what a checker may use per answer.
        rules: which share of the candidates runs twice (`confirm`), the second time in a drawn order (`draws_order`) or
            else in reverse; and when two values agree.

    Raises:
        SandboxError: the sandbox cannot be used at all.
    """
    twice = [position for position, job in enumerate(jobs) if job.calls and is_confirmed(job.program, rules.confirm)]
    again = [_Ordered.of(jobs[position], rules.draws_order) for position in twice]
    second_jobs = [each.job for each in again]
    reports = sandbox.run([*jobs, *others, *second_jobs])
    n_once = len(jobs) + len(others)
    loaded = _loaded([*jobs, *second_jobs], [*reports[: len(jobs)], *reports[n_once:]], sandbox)
    in_place = loaded[: len(jobs)] + [e.in_place(r) for e, r in zip(again, loaded[len(jobs) :], strict=True)]
    positions = (*range(len(jobs)), *twice)
    answers = [answered[position](report) for position, report in zip(positions, in_place, strict=True)]
    accepted = accept_right_answers(answers, sandbox, limits, rules.comparison)
    found, second = accepted[: len(jobs)], accepted[len(jobs) :]
    for position, report in zip(twice, second, strict=True):
        found[position] = _both(found[position], report, rules.comparison)
    return [*found, *reports[len(jobs) : n_once]]


@dataclass(frozen=True, slots=True)
class _Ordered:
    """A job with its calls in the order of a second run."""

    job: Job
    order: tuple[int, ...]
    """(n,) positions of its calls among those of the original job."""

    @classmethod
    def of(cls, job: Job, is_drawn: bool) -> Self:
        order = tuple(range(len(job.calls)))[::-1]
        if is_drawn:
            order = drawn_order(job.program, [call.expression for call in job.calls], 1)
        return cls(replace(job, calls=tuple(job.calls[position] for position in order)), order)

    def in_place(self, report: JobReport) -> JobReport:
        """Return a report on the job with everything in the order of the original job's calls."""

        places = sorted(range(len(self.order)), key=self.order.__getitem__)

        def restored(items: tuple[_T, ...]) -> tuple[_T, ...]:
            return tuple(map(items.__getitem__, places)) if len(items) == len(places) else items

        return replace(
            report,
            outcomes=restored(report.outcomes),
            call_s=restored(report.call_s),
            entry_point_calls=restored(report.entry_point_calls),
        )


def _both(first: JobReport, second: JobReport, comparison: Comparison) -> JobReport:
    """Combine the reports of two runs."""
    if not (first.loaded and second.loaded):
        return first if second.loaded else replace(first, load=second.load, outcomes=second.outcomes)
    pairs = zip(first.outcomes, second.outcomes, strict=True)
    outcomes = tuple(combined_outcome(one, other, comparison) for one, other in pairs)
    return replace(first, outcomes=outcomes, cpu_s=first.cpu_s + second.cpu_s)


def _loaded(jobs: Sequence[Job], reports: Sequence[JobReport], sandbox: Sandbox) -> list[JobReport]:
    """Return the reports, where a program that loads only without calls has failed its calls.

    Otherwise a candidate could pose as one that does not load whenever it expects to fail.
    """
    found = list(reports)
    faults = [
        position
        for position, report in enumerate(reports)
        if jobs[position].calls and not report.loaded and report.load.kind is not OutcomeKind.INTERNAL_ERROR
    ]
    alone = sandbox.run([replace(jobs[position], calls=()) for position in faults]) if faults else []
    for position, report in zip(faults, alone, strict=True):
        if report.loaded:
            failure = found[position].load
            found[position] = replace(
                found[position], load=report.load, outcomes=(failure,) * len(found[position].outcomes)
            )
    return found


def is_confirmed(program: str, share: float) -> bool:
    """Whether a candidate runs twice. A hash of its text decides, so every process decides the same.

    Args:
        program: source of the candidate.
        share: share of all programs that run twice, in [0, 1].

    Raises:
        ValueError: the share is outside [0, 1].
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share must be in [0, 1], got {share}")
    digest = hashlib.blake2b(program.encode("utf-8", "surrogatepass"), digest_size=_BITS // 8, person=b"confirm")
    return int.from_bytes(digest.digest()) < share * (1 << _BITS)


def drawn_order(program: str, calls: Sequence[str], run: int) -> tuple[int, ...]:
    """Return the order of a run's calls, as positions. A hash decides, of which the program knows only a part.

    Args:
        program: source of the candidate.
        calls: all of its calls, as texts.
        run: 0, or 1 for a second run of calls in the order of the first, which is never theirs.
    """
    texts = "\0".join((str(run), program, *calls)).encode("utf-8", "surrogatepass")
    given = tuple(range(len(calls)))
    keys = hashlib.shake_128(texts).digest(8 * len(calls))
    drawn = tuple(sorted(given, key=lambda position: keys[8 * position : 8 * position + 8]))
    return drawn if run == 0 or drawn != given else drawn[::-1]


def combined_outcome(first: Outcome, second: Outcome, comparison: Comparison) -> Outcome:
    """Combine the outcomes of two runs of one call: a value only if both runs returned it.

    INTERNAL_ERROR in either run gives INTERNAL_ERROR. NOT_RUN is not evidence, so the other run decides. Otherwise a
    failure in either run counts, the first run's if both failed. Different values give an ERROR of type `Flaky`.

    Args:
        first: outcome of the first run.
        second: outcome of the second run, in another order and process.
        comparison: when two values count as equal.
    """
    for kind in (OutcomeKind.INTERNAL_ERROR, OutcomeKind.NOT_RUN):
        if kind in (first.kind, second.kind):
            is_ours = kind is OutcomeKind.INTERNAL_ERROR
            return first if (first.kind is kind) is is_ours else second
    if first.value is None or second.value is None:
        return first if first.value is None else second
    if values_agree(first.value, second.value, comparison):
        return first
    return Outcome(OutcomeKind.ERROR, error_type="Flaky", message="returned something else in another run")
