"""Which calls a benchmark's harness is about to make, so that a program answers many of them at a time.

Each call of a harness wakes three processes one after the other, which costs more than most programs take. A harness of
a benchmark makes the same calls of every right program. So the calls that one run has made are read ahead in the next:
the program gets some of them together, and the harness gets their answers together. The harness sees the same answers
as before; only a program that cannot see its calls (`reach`) gets them early. How long a call takes is not as before,
so a harness that imports a clock is not foreseen.

If the harness makes other calls than before, or the answers are too large to be kept, the job runs again without
foresight.
"""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from codea1_env.facts.outcomes import TOO_MANY, Outcome, OutcomeKind
from codea1_env.sandbox.interface import Call, Job, JobReport, Place
from codea1_env.sandbox.wire import Frame

_MOST_BYTES = 1 << 22  # of one harness's arguments, or of the answers read ahead
_MOST_KNOWN = 64  # harnesses whose calls are remembered
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
        if outcome.kind is OutcomeKind.VALUE and TOO_MANY not in made and sum(map(len, arguments)) <= _MOST_BYTES:
            self._remember(job, arguments)

    def forget(self, job: Job) -> None:
        """Give up a harness that makes other calls each time."""
        self._remember(job, ())

    def _remember(self, job: Job, arguments: tuple[bytes, ...]) -> None:
        self._known[_key(job)] = arguments
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)


class Misled(Exception):
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
            Misled: the answers that the harness has not asked for are too large to be kept.
        """
        self.answers.append(Answered(self.asked.popleft(), frame, outcome))
        self._n_bytes += len(frame.payload)
        if self._n_bytes > _MOST_BYTES and (self.asked or len(self.answers) > 1):
            raise Misled

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
