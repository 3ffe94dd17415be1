"""What passes between a harness and the program that it calls: the calls, their answers, and the record of both.

Each call of a harness wakes three processes one after the other, which costs more than most programs take. A harness of
a benchmark makes the same calls of every right program. So the calls that one run has made are read ahead in the next
(`Foresight`): the program gets some of them together, and the harness gets their answers together. The harness sees the
same answers as before; only a program that cannot see its calls (`reach`) gets them early. How long a call takes is not
as before, so a harness that imports a clock is not foreseen. If the harness makes other calls than before, or the
answers are too large to be kept, the job runs again without foresight.
"""

from __future__ import annotations

import json
import marshal
import re
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from codea1_env.facts.verdicts import TOO_MANY, EntryPointCall, Outcome, OutcomeKind
from codea1_env.sandbox.interface import (
    OPAQUE_ARGUMENT,
    OPAQUE_RESULT_USE,
    OVERSIZED_ARGUMENT,
    RECORD_FACTOR,
    Call,
    Job,
    JobReport,
    Place,
)
from codea1_env.sandbox.local.process import as_outcome, error_fields
from codea1_env.sandbox.wire import UNEXPECTED, Changed, Frame, Items, Tag, WireError
from codea1_env.values import encode

_MOST_BYTES = 1 << 22  # of the answers read ahead
_MOST_KNOWN, _MOST_KNOWN_BYTES = 64, 1 << 20  # harnesses whose calls are remembered, and what each may take
_SEES_TIME = re.compile(
    r"^[ \t]*(?:import|from)\b.*\b(?:asyncio|concurrent|datetime|resource|sched|signal|threading|time|timeit)\b", re.M
)
"""An import of something that shows how long a call takes."""
_FIRST, _MOST_AT_ONCE = 4, 128  # calls: few at first, since most wrong programs fail early

_Key: TypeAlias = tuple[str, str, tuple[Call, ...]]


class Foresight:
    """The calls of harnesses that have run."""

    def __init__(self) -> None:
        self._known: OrderedDict[_Key, tuple[bytes, ...]] = OrderedDict()

    def of(self, job: Job) -> tuple[bytes, ...]:
        """Return the encoded arguments of the calls that the job's harness will probably make, in order."""
        return self._known.get(_key(job), ()) if _has_one_harness(job) else ()  # the key of many calls costs time

    def learn(self, job: Job, report: JobReport) -> None:
        """Remember the calls of a harness that has passed."""
        if not _has_one_harness(job) or _key(job) in self._known or _SEES_TIME.search(job.harness.source):
            return
        (outcome,), (made,) = report.outcomes, report.entry_point_calls
        arguments = tuple(call.arguments for call in made)
        n_bytes = len(repr(_key(job))) + sum(map(len, arguments))
        if outcome.kind is OutcomeKind.VALUE and TOO_MANY not in made and n_bytes <= _MOST_KNOWN_BYTES:
            self._remember(job, arguments)

    def forget(self, job: Job) -> None:
        """Give up a harness that makes other calls each time."""
        self._remember(job, ())

    def _remember(self, job: Job, arguments: tuple[bytes, ...]) -> None:
        self._known[_key(job)] = arguments
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)


class WrongForesight(Exception):
    """The program has answered, or would answer, more than may be kept or than the harness asks for."""


class Answered(NamedTuple):
    """A call of the program and its answer."""

    arguments: bytes
    frame: Frame
    outcome: Outcome


class ReadAhead:
    """How far one job has read ahead."""

    def __init__(self, expected: Sequence[bytes]) -> None:
        self.answers: deque[Answered] = deque()
        """That the harness has not asked for yet."""
        self.asked: deque[bytes] = deque()
        """The arguments of the calls that the program is answering."""
        self.ending: Outcome | None = None
        """How the program has ended, if it has, after these answers."""
        self._expected = expected
        self._n_made = self._n_bytes = 0
        self._n_at_once = _FIRST

    def is_expected(self, arguments: bytes) -> bool:
        """Whether the harness now makes the call that it was expected to make."""
        return self._n_made < len(self._expected) and self._expected[self._n_made] == arguments

    def ask(self, arguments: bytes) -> None:
        """Choose the calls that the program is to answer next, from the one that the harness makes."""
        if not self.is_expected(arguments):
            self._expected = ()
            self.asked.append(arguments)
            return
        self.asked.extend(self._expected[self._n_made : self._n_made + self._n_at_once])
        self._n_at_once = min(2 * self._n_at_once, _MOST_AT_ONCE)

    def answer(self, frame: Frame, outcome: Outcome) -> None:
        """Add the program's next answer.

        Raises:
            WrongForesight: the answers that the harness has not asked for are too large to be kept.
        """
        self.answers.append(Answered(self.asked.popleft(), frame, outcome))
        self._n_bytes += len(frame.payload)
        if self._n_bytes > _MOST_BYTES and (self.asked or len(self.answers) > 1):
            raise WrongForesight

    def take(self) -> list[Answered]:
        """Return the answers that the harness gets together: values, or one that is none."""
        taken: list[Answered] = []
        while self.answers and (not taken or (_is_value(taken[0]) and _is_value(self.answers[0]))):
            taken.append(self.answers.popleft())
            self._n_bytes -= len(taken[-1].frame.payload)
        self._n_made += len(taken)
        return taken


def _is_value(answered: Answered) -> bool:
    return answered.outcome.kind is OutcomeKind.VALUE


def _has_one_harness(job: Job) -> bool:
    """Whether the job's only call is evaluated by the harness of a benchmark."""
    calls, harness = job.calls, job.harness
    return len(calls) == 1 and calls[0].place is Place.HARNESS and harness.is_trusted and not harness.records


def _key(job: Job) -> _Key:
    return job.harness.source, job.entry_point, job.calls


_CALL_BYTES = 32  # what a recorded call costs in addition to its encoded values
_REFUSALS = frozenset(
    {OPAQUE_ARGUMENT, OVERSIZED_ARGUMENT, OPAQUE_RESULT_USE}
)  # error types of the harness's stand-in for the program, see `inside.harness`


class Relay:
    """The calls that the harness of a job makes of the program.

    The harness makes one call at a time (`ask`). The program answers it, and perhaps some that are foreseen (`answer`);
    then the harness gets what it asked for (`take`), and continues.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._source_calls = frozenset(map(encode, job.harness.source_calls))
        self._records: dict[int, _Record] = {}
        self._index: int | None = None
        self._fault: Outcome | None = None
        """The program's last answer, if it is not a value."""
        self._ahead = ReadAhead(())
        self._given: list[Answered] = []
        """The answers that the harness got for calls that it had not made; it may not make them."""
        self._has_left_answers = False

    def begin(self, index: int | None = None, expected: Sequence[bytes] = ()) -> None:
        """Begin a call of the job that the harness evaluates.

        Args:
            index: number of the call; None while the harness loads, which is not recorded.
            expected: the encoded arguments of the calls that the harness will probably make.
        """
        self._index = index
        self._fault = None
        self._ahead = ReadAhead(expected)

    def ask(self, arguments: bytes) -> list[bytes]:
        """Take a call that the harness makes.

        Returns:
            The calls that the program must answer, each as its encoded arguments; [] if the answer is here already, or
            the program has ended in this call (`ending`).

        Raises:
            WireError: the harness sends an expression that the job does not have.
            WrongForesight: the program has answered calls that the harness does not make.
        """
        if arguments[:1] == b'"' and arguments not in self._source_calls:
            raise WireError("a source call that the job does not have")
        self._record_given()
        self._record_call(arguments)
        ahead = self._ahead
        if not ahead.answers and self.ending is None and not self._has_left_answers:
            ahead.ask(arguments)
            return [*ahead.asked]
        if self._has_left_answers or not ahead.is_expected(arguments):
            raise WrongForesight
        return []

    def answer(self, frame: Frame, outcome: Outcome) -> bool:
        """Take the program's next answer; return whether it has answered all that it was asked.

        Raises:
            WrongForesight: see `ReadAhead.answer`.
        """
        self._ahead.answer(frame, outcome)
        return not self._ahead.asked

    def take(self) -> tuple[bytes, bytes]:
        """Return tag and payload of the frame that the harness gets, re-encoded against a tampered process."""
        first, *self._given = self._ahead.take()
        if first.outcome.kind is not OutcomeKind.VALUE:
            self._fault = first.outcome
        if self._index is not None:
            self._records[self._index].add_answer(first.outcome)  # `ask` has made it
        if self._given:
            return Tag.AHEAD, marshal.dumps([each.frame.payload for each in (first, *self._given)])
        return first.frame.tag, _clean_payload(first.frame.tag, first.frame)

    def take_back(self, n_answers: int) -> None:
        """Take back the last answers, for calls that the harness does not make.

        Raises:
            WireError: fewer are left.
        """
        if not 0 < n_answers <= len(self._given):
            raise WireError(UNEXPECTED)
        del self._given[-n_answers:]
        self._has_left_answers = True

    @property
    def has_answers(self) -> bool:
        """Whether there are answers that the harness has not got."""
        return bool(self._ahead.answers)

    @property
    def ending(self) -> Outcome | None:
        """How the program has ended after these answers, in a call that the harness may not make."""
        return self._ahead.ending

    def end(self, outcome: Outcome) -> None:
        """The program has ended in a call, after others whose answers the harness has not got."""
        self._ahead.ending = outcome

    def outcome(self, frame: Frame) -> Outcome:
        """Return what a call of the job has led to, and end it.

        Distinguishes the harness's own exceptions from those that the program raised and the harness did not catch.
        """
        self._record_given()
        outcome = as_outcome(frame)
        if outcome.kind is OutcomeKind.MEMORY_LIMIT and self._fault is not None:
            return self._fault
        if outcome.kind is not OutcomeKind.ERROR:
            return outcome
        *_, from_program = error_fields(frame.payload)
        if from_program:
            return self._of_program(outcome)
        return replace(outcome, message=f"in the harness: {outcome.message}"[:300])

    def _of_program(self, raised: Outcome) -> Outcome:
        """Return the outcome of an expression that ended with an exception from the stand-in."""
        fault = self._fault
        if raised.error_type in _REFUSALS and (fault is None or fault.error_type != raised.error_type):
            return replace(raised, kind=OutcomeKind.OPAQUE)  # not an exception of the program with that name
        is_late = fault is not None and fault.kind is OutcomeKind.OPAQUE  # raised by the items of a result
        return raised if fault is None or is_late else fault

    def answer_of(self, frame: Frame) -> Outcome:
        """Return the program's answer to a call of the harness.

        Raises:
            WireError: the frame is not an answer.
        """
        if frame.tag == Tag.VALUE:
            # Not validated here: the harness validates what it decodes, and so does the code that compares it.
            return Outcome(OutcomeKind.VALUE, frame.payload)
        if frame.tag == Tag.CHANGED and self._job.harness.is_trusted:
            raise WireError("unexpected changed arguments")
        return as_outcome(frame)

    # Records

    def records(self) -> tuple[tuple[EntryPointCall, ...], ...]:
        """Return the calls that each call of the job made; () for those that no harness evaluated."""
        calls = [self._records.get(index) for index in range(len(self._job.calls))]
        return tuple(() if record is None else tuple(record.calls) for record in calls)

    def _record_call(self, arguments: bytes) -> None:
        if self._index is not None:
            record = self._records.get(self._index)
            if record is None:
                budget = RECORD_FACTOR * self._job.limits.value_bytes
                record = self._records[self._index] = _Record(budget)
            record.add_call(arguments)

    def _record_given(self) -> None:
        """Record the calls that the harness has made without asking, since it had their answers."""
        if self._index is not None:
            for given in self._given:
                self._record_call(given.arguments)
                self._records[self._index].add_answer(given.outcome)
        self._given = []


def _clean_payload(tag: bytes, frame: Frame) -> bytes:
    """Return the payload of a checked answer as it is sent to the harness."""
    if tag == Tag.ERROR:
        return json.dumps(error_fields(frame.payload)).encode()
    if tag == Tag.ITEMS and (items := Items.unpack(frame.payload)).error:
        return items._replace(error=json.dumps(error_fields(items.error)).encode()).pack()
    if tag == Tag.CHANGED:
        changed = Changed.unpack(frame.payload)
        inner = frame._replace(tag=changed.tag, payload=changed.payload)
        return changed._replace(payload=_clean_payload(changed.tag, inner)).pack()
    return frame.payload


class _Record:
    """The calls of the entry point that one harness call made, within a budget of bytes."""

    __slots__ = ("_budget", "calls")

    def __init__(self, budget: int) -> None:
        self.calls: list[EntryPointCall] = []
        self._budget = budget

    def add_call(self, arguments: bytes) -> None:
        """Record a call before its answer comes."""
        self._budget -= len(arguments) + _CALL_BYTES
        if self._budget >= 0:
            self.calls.append(EntryPointCall(arguments))
        elif not self.calls or self.calls[-1] is not TOO_MANY:
            self.calls.append(TOO_MANY)

    def add_answer(self, answer: Outcome) -> None:
        """Record the answer to the last call."""
        self._budget -= len(answer.value or b"") + len(answer.items or b"") + len(answer.arguments or b"")
        if self.calls[-1] is TOO_MANY:
            return
        self.calls[-1] = EntryPointCall(self.calls[-1].arguments, answer) if self._budget >= 0 else TOO_MANY
