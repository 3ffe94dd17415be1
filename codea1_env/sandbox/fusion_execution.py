"""One job from its first request to its report, over a server that runs one process per request.

One request loads the program and answers all direct calls; what hangs or kills the process is lost, and the rest goes
on in another request. Where a server drops the output of a process that has died, fewer calls are asked at a time,
until the one is found. Harness calls: see `fusion_replay`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from codea1_env.outcomes import Outcome, OutcomeKind
from codea1_env.sandbox.fusion_http import Unanswered
from codea1_env.sandbox.fusion_ledger import Ask, Bounds, Ledger, claim
from codea1_env.sandbox.fusion_replay import answer_harness_calls
from codea1_env.sandbox.fusion_runner import Mark
from codea1_env.sandbox.fusion_script import program_script
from codea1_env.sandbox.fusion_talk import Talk
from codea1_env.sandbox.interface import Job, JobReport, Place
from codea1_env.sandbox.wire import LOAD

__all__ = ["run_job"]


def run_job(job: Job, ask: Ask, bounds: Bounds) -> JobReport:
    """Run one job.

    Args:
        job: what to run.
        ask: makes a request. Where it raises Unanswered, what is not known by then is INTERNAL_ERROR.
        bounds: of the job's requests.
    """
    ledger = Ledger(job, ask, bounds)
    try:
        _answer_direct_calls(ledger)
        answer_harness_calls(ledger)
    except Unanswered as failure:
        return ledger.report(Outcome(OutcomeKind.INTERNAL_ERROR, message=str(failure)[:300]))
    return ledger.report(Outcome(OutcomeKind.NOT_RUN))


def _answer_direct_calls(ledger: Ledger) -> None:
    pending = ledger.positions(Place.PROGRAM)
    n_at_once = len(pending)
    while (pending or ledger.load is None) and ledger.is_open:
        asked = list(pending)[:n_at_once]
        talk = ledger.ask(program_script(ledger.job, asked, ledger.bounds.max_output_bytes))
        if not talk.has_begun and (len(asked) > 1 or (asked and ledger.load is None)):
            n_at_once = len(asked) // 2
            continue
        stopped_at = _take(ledger, talk, asked, pending)
        if stopped_at is None:
            n_at_once = max(n_at_once, 1)
        else:
            _settle(ledger, talk, stopped_at, asked, pending)
            n_at_once = len(pending)


def _take(ledger: Ledger, talk: Talk, asked: Sequence[int], pending: deque[int]) -> int | None:
    """Enter the answers; return the first that is missing, which is what ended the process."""
    if not talk.has_begun and asked:  # by now it is known to load
        return asked[0]
    before_s = talk.base_s
    for index in (LOAD, *asked):
        frame = talk.answers.get(index)
        if frame is None:
            return index
        outcome = claim(frame, ledger.job.limits.value_bytes)
        outcome = ledger.within_time(outcome, frame.cpu_us / 1e6 - before_s, is_load=index == LOAD)
        before_s = frame.cpu_us / 1e6
        if index != LOAD:
            ledger.outcomes[pending.popleft()] = outcome
        elif outcome.kind is not OutcomeKind.VALUE:
            ledger.fail_to_load(outcome)
            return None
        else:
            ledger.load = outcome
    return None


def _settle(ledger: Ledger, talk: Talk, stopped_at: int, asked: Sequence[int], pending: deque[int]) -> None:
    if stopped_at != LOAD and Mark.FULL in talk.marks:
        if stopped_at == asked[0]:  # it does not fit even alone
            ledger.lose(pending.popleft(), ledger.overflow())
    elif ledger.doubts("call", stopped_at, talk.ending):
        return
    elif stopped_at == LOAD:
        ledger.fail_to_load(talk.ending.outcome)
    else:
        ledger.lose(pending.popleft(), talk.ending.outcome)
