"""Harness calls over a server where the program's process and the harness's cannot talk to each other.

The harness is *replayed*. A request runs it with the program's answers so far and brings the questions that have none
(`fusion_runner` says how it finds many at once); another loads the program and puts to it, in one process and in their
order, all questions so far; and again, until the harness asks nothing new. So what is reported comes from a harness
that got, question by question, what one process of the program said to just these questions (or several processes, if
the answers are too long for one output). A harness must ask the same things in each replay.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from codea1_env.outcomes import Outcome, OutcomeKind
from codea1_env.sandbox.fusion_ledger import Ledger, claim
from codea1_env.sandbox.fusion_runner import Mark
from codea1_env.sandbox.fusion_script import Answer, Script, harness_script, program_script, scout_script
from codea1_env.sandbox.fusion_talk import Ending, Talk
from codea1_env.sandbox.interface import Place
from codea1_env.sandbox.process import error_fields
from codea1_env.sandbox.wire import APPLY, LOAD, Frame, Tag

__all__ = ["answer_harness_calls"]


@dataclass(slots=True)
class _Transcript:
    """What the program said to the harness's questions, in their order."""

    answers: list[Answer] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    """One per answer; only the kind of those that are values is right."""
    used_s: list[float] = field(default_factory=list)
    """One per answer: processor seconds; 0 where unknown."""

    def add(self, arguments: str, frame: Frame, outcome: Outcome, used_s: float) -> None:
        """Enter an answer, cleaned of what only a tampered process would send."""
        payload = json.dumps(error_fields(frame)).encode() if frame.tag == Tag.ERROR else frame.payload
        self.answers.append(Answer(arguments, frame.tag, payload))
        self.outcomes.append(outcome)
        self.used_s.append(used_s)

    def lose(self, arguments: str, outcome: Outcome) -> None:
        """Enter a question that costs the program its process."""
        self.answers.append(Answer(arguments, Mark.LOST, b""))
        self.outcomes.append(outcome)
        self.used_s.append(0.0)

    @property
    def is_lost(self) -> bool:
        """Whether it ends with a question that cost the program its process."""
        return bool(self.answers) and self.answers[-1].tag == Mark.LOST

    def fault_within(self, start: int, end: int) -> Outcome | None:
        """Return the last answer of some that is not a value."""
        faults = [outcome for outcome in self.outcomes[start:end] if outcome.kind is not OutcomeKind.VALUE]
        return faults[-1] if faults else None


def answer_harness_calls(ledger: Ledger) -> None:
    """Evaluate the harness calls of a job whose program loads.

    Raises:
        Unanswered: the server fails.
    """
    pending = ledger.positions(Place.HARNESS)
    while pending and ledger.is_open:
        _Replay(ledger, pending).run()


class _Replay:
    """A harness from its loading to the first call that costs a process."""

    def __init__(self, ledger: Ledger, pending: deque[int]) -> None:
        self._ledger = ledger
        self._job = ledger.job
        self._pending = pending
        self._transcript = _Transcript()
        self._n_at_once = len(pending)
        self._may_guess = True
        self._silent_end: Ending | None = None
        """Of the last process of which nothing came back."""

    def run(self) -> None:
        """Answer at least one pending call, or put one in doubt."""
        max_bytes = self._ledger.bounds.max_output_bytes
        self._ask_program(self._ledger.ask(scout_script(self._job, list(self._pending), max_bytes)).questions)
        for _ in range(self._ledger.bounds.max_rounds):
            talk = self._ledger.ask(self._script())
            if not talk.has_begun and self._can_ask_less():
                self._silent_end = talk.ending
                continue
            if APPLY not in talk.counts:  # it asked nothing new
                self._finish(talk)
                return
            if not talk.questions:
                self._give_up(talk, self._ledger.overflow())
                return
            n_right = min(talk.counts[APPLY], len(self._transcript.answers))
            known = [answer.arguments for answer in self._transcript.answers[:n_right]]
            self._ask_program([*known, *talk.questions])
            if not self._ledger.is_open:
                return
        message = "the harness's questions depend on one another more deeply than it is replayed"
        self._give_up(talk, Outcome(OutcomeKind.INTERNAL_ERROR, message=message))

    def _script(self) -> Script:
        asked = list(self._pending)[: self._n_at_once]
        max_bytes = self._ledger.bounds.max_output_bytes
        return harness_script(self._job, asked, max_bytes, self._transcript.answers, self._may_guess)

    def _can_ask_less(self) -> bool:
        """After an output that did not come back: without guessing, then with fewer calls, at last with none."""
        if self._may_guess:
            self._may_guess = False
            return True
        n_before = self._n_at_once
        self._n_at_once //= 2
        return n_before > 0

    # The harness's side

    def _finish(self, talk: Talk) -> None:
        n_before = len(self._pending)
        if not self._take(talk):
            if self._n_at_once == 0 and self._pending and self._silent_end is not None:
                self._lose(self._silent_end)  # it loads, so it is the one call that was asked before
            return
        if Mark.FULL in talk.marks:
            if len(self._pending) == n_before:
                self._ledger.lose(self._pending.popleft(), self._ledger.overflow())
        elif Mark.LOST in talk.marks and self._transcript.is_lost:
            self._ledger.lose(self._pending.popleft(), self._transcript.outcomes[-1])
        else:
            self._lose(talk.ending)

    def _lose(self, ending: Ending) -> None:
        if not self._ledger.doubts("harness call", self._pending[0], ending):
            self._ledger.lose(self._pending.popleft(), ending.outcome)

    def _take(self, talk: Talk) -> bool:
        """Enter the answers; return whether the process stopped at the first call that is still pending."""
        if not self._take_load(talk):
            return False
        n_asked = talk.counts.get(LOAD, 0)
        used_s = talk.answers[LOAD].cpu_us / 1e6
        for index in list(self._pending)[: self._n_at_once]:
            frame = talk.answers.get(index)
            if frame is None:
                return True
            n_before, n_asked = n_asked, talk.counts.get(index, n_asked)
            outcome = self._outcome(frame, self._transcript.fault_within(n_before, n_asked))
            outcome = self._ledger.within_time(outcome, frame.cpu_us / 1e6 - used_s)
            outcome = self._ledger.within_time(outcome, sum(self._transcript.used_s[n_before:n_asked]))
            self._ledger.outcomes[self._pending.popleft()] = outcome
            used_s = frame.cpu_us / 1e6
        return False

    def _take_load(self, talk: Talk) -> bool:
        """Return whether the harness has loaded; if not, that is every call's outcome."""
        frame = talk.answers.get(LOAD)
        if frame is not None and frame.tag == Tag.LOADED:
            return True
        if frame is not None:
            outcome = self._outcome(frame, self._transcript.fault_within(0, talk.counts.get(LOAD, 0)))
        elif Mark.LOST in talk.marks and self._transcript.is_lost:
            outcome = self._transcript.outcomes[-1]
        elif self._ledger.doubts("harness", 0, talk.ending):
            return False
        else:
            outcome = talk.ending.outcome
        self._fill(outcome)
        return False

    def _outcome(self, frame: Frame, fault: Outcome | None) -> Outcome:
        """Tell the harness's own exceptions from those that the program raised and nobody caught."""
        outcome = claim(frame, self._job.limits.value_bytes)
        if outcome.kind is OutcomeKind.MEMORY_LIMIT:
            return fault or outcome
        if outcome.kind is not OutcomeKind.ERROR:
            return outcome
        *_, is_from_program = error_fields(frame)
        if is_from_program:
            return fault or outcome
        return replace(outcome, message=f"in the harness: {outcome.message}"[:300])

    def _give_up(self, talk: Talk, outcome: Outcome) -> None:
        """Keep what was answered before the question that cannot be; `outcome` is that of the call that asks it."""
        if LOAD not in talk.answers:
            self._fill(outcome)
        elif self._take(talk) or (self._n_at_once == 0 and self._pending):
            self._ledger.lose(self._pending.popleft(), outcome)

    def _fill(self, outcome: Outcome) -> None:
        for index in self._pending:
            self._ledger.outcomes[index] = outcome
        self._pending.clear()

    # The program's side

    def _ask_program(self, questions: Sequence[str]) -> None:
        """Put all questions to a new process; keep what it says, up to the first that costs it its life."""
        self._transcript = transcript = _Transcript()
        too_many = len(questions) + 1  # of so many at once, nothing comes back
        while len(transcript.answers) < len(questions) and not transcript.is_lost and self._ledger.is_open:
            n_known = len(transcript.answers)
            n_asked = max(n_known + 1, (n_known + too_many) // 2) if too_many <= len(questions) else len(questions)
            asked = questions[:n_asked]
            max_bytes = self._ledger.bounds.max_output_bytes
            talk = self._ledger.ask(program_script(self._job, (), max_bytes, asked, n_quiet=n_known))
            if not talk.has_begun and n_asked > n_known + 1:
                too_many = n_asked
            elif not talk.has_begun or self._has_loaded(talk):
                self._take_answers(talk, asked)
                self._settle(talk, asked, n_known)

    def _has_loaded(self, talk: Talk) -> bool:
        """Return whether the program has loaded once more; if it will not, nothing more can be asked."""
        frame = talk.answers.get(LOAD)
        if frame is None and self._ledger.doubts("program", LOAD, talk.ending):
            return False
        outcome = talk.ending.outcome if frame is None else claim(frame, 0)
        if outcome.kind is not OutcomeKind.VALUE:
            self._ledger.fail_to_load(outcome)
            return False
        return True

    def _settle(self, talk: Talk, asked: Sequence[str], n_known: int) -> None:
        """After the answers: say what became of the first question that has none."""
        n_answered = len(self._transcript.answers)
        if n_answered == len(asked) or self._transcript.is_lost:
            return
        if Mark.FULL in talk.marks:
            if n_answered == n_known:
                self._transcript.lose(asked[n_answered], self._ledger.overflow())
        elif not self._ledger.doubts("program of a harness", self._pending[0], talk.ending):
            self._transcript.lose(asked[n_answered], talk.ending.outcome)

    def _take_answers(self, talk: Talk, questions: Sequence[str]) -> None:
        """Enter the answers to questions that have none yet, in order."""
        n_known = len(self._transcript.answers)
        before_s = talk.answers[LOAD].cpu_us / 1e6 if LOAD in talk.answers and n_known == 0 else None
        for number in range(n_known, len(questions)):
            frame = talk.answers.get(number)
            if frame is None:
                return
            # Unknown for the first after those whose answers were not repeated.
            used_s = 0.0 if before_s is None else frame.cpu_us / 1e6 - before_s
            before_s = frame.cpu_us / 1e6
            outcome = self._ledger.within_time(_answer_outcome(frame), used_s)
            if outcome.kind in (OutcomeKind.TIME_LIMIT, OutcomeKind.CRASHED):
                self._transcript.lose(questions[number], outcome)
                return
            self._transcript.add(questions[number], frame, outcome, used_s)


def _answer_outcome(frame: Frame) -> Outcome:
    """Return what an answer claims. A value is not looked at: it reaches only the harness, which checks it."""
    return Outcome(OutcomeKind.VALUE, b"null") if frame.tag == Tag.VALUE else claim(frame, 0)
