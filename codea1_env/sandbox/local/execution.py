"""One job from its first fork to its report: a state machine without threads, clocks or system calls of its own.

Stages: the program's process loads (`LOADING`) and answers the direct calls (`DIRECT`), which it gets all at once or,
if it might see them before it must answer (`reach`), one by one. If there are harness calls, it
keeps running, and a second process loads the harness (`HARNESS_LOADING`) and evaluates them (`HARNESS`). The execution
passes each call of the stand-in to the program's process, and the answer back to the harness. If a call hangs or kills
its process, the other calls continue in new processes.
"""

from __future__ import annotations

import json
import marshal
import math
import os
import signal
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from enum import Enum, auto
from os import WIFSIGNALED, WTERMSIG

from codea1_env.facts.entry_points import read_entry_point
from codea1_env.facts.outcomes import TOO_MANY, EntryPointCall, Outcome, OutcomeKind
from codea1_env.sandbox.interface import (
    BROKEN_HARNESS,
    OPAQUE_ARGUMENT,
    OPAQUE_RESULT_USE,
    OVERSIZED_ARGUMENT,
    RECORD_FACTOR,
    SLEPT,
    Call,
    Job,
    JobReport,
    Place,
)
from codea1_env.sandbox.local.foresight import Answered, ReadAhead
from codea1_env.sandbox.local.process import Process, as_outcome, as_value, error_fields
from codea1_env.sandbox.local.reach import may_see_calls
from codea1_env.sandbox.wire import APPLY, LOAD, Changed, Frame, Notice, Tag, WireError
from codea1_env.values import encode

_NULL = Outcome(OutcomeKind.VALUE, encode(None))
_NOT_RUN = Outcome(OutcomeKind.NOT_RUN)
_CPU_SLACK_S = 0.05  # a call within its limit must not be stopped because of the time that measuring takes
_MAX_STRETCH = 10  # a starved process may sleep this many times `wall_s` before the job is run again
_COSTLY = 0.25  # share of the limit
_ITEMS_SHARE = 0.5  # share of the limit, for iterating a result that is not plain data
_CALL_BYTES = 32  # of a record, beside the encoded values
_REFUSALS = frozenset(
    {OPAQUE_ARGUMENT, OVERSIZED_ARGUMENT, OPAQUE_RESULT_USE}
)  # classes of the stand-in, see `inside.harness`
_MAX_RECEIVED_AT_ONCE = 1 << 22  # bytes; then other processes are read
_NO_PROCESS = -1
_N_CORES = os.cpu_count() or 1
_MAX_LIFE_S = 1 << 30
_FRAME_EXTRA = 16_384  # an error's texts, each character up to twelve bytes
_UNEXPECTED = "an unexpected frame"

Spawn = Callable[[int, int], Process]
"""(processor seconds in all, longest payload in bytes) -> a new process of the job's worker."""


class Stage(Enum):
    """What a job is doing."""

    LOADING = auto()
    DIRECT = auto()
    HARNESS_LOADING = auto()
    HARNESS = auto()
    DONE = auto()


class Execution:
    """A job that is being run."""

    def __init__(self, job: Job, spawn: Spawn, expected: Sequence[bytes] = ()) -> None:
        """Start a job. `expected` are the encoded arguments of the calls that its harness will probably make."""
        self.job = job
        self.is_starved = False
        """Whether the machine gave it no processor or no process, or killed it; then its outcomes do not count."""
        self.processes: list[Process] = []
        """All processes that have not ended."""
        self.is_misled = False
        """Whether its harness makes other calls than expected, so that it must run again without foresight."""
        self._spawn = spawn
        self._load: Outcome | None = None
        self._outcomes = [_NOT_RUN] * len(job.calls)
        places = [call.place for call in job.calls]
        self._direct = _positions(places, Place.PROGRAM)
        self._indirect = _positions(places, Place.HARNESS)
        may_look = (len(self._direct) > 1 and not job.isolates_calls) or bool(expected)
        may_look = may_look and any(map(may_see_calls, (plain(job.preamble), plain(job.program))))
        self._calls_come_singly = may_look and len(self._direct) > 1
        self._expected = () if may_look else expected
        self._ahead = ReadAhead(())
        self._given: list[Answered] = []
        """The answers that the harness got for calls that it had not made; it may not make them."""
        self._has_left_answers = False
        self._n_faults = 0
        self._cpu_us = 0
        self._used_s = [0.0] * len(job.calls)
        self._records: dict[int, _Record] = {}
        """Index of a harness call that has begun -> its record."""
        self._last_use_s = 0.0
        """Processor seconds of the last activity during which a process ended."""
        self._idle_s = 0.0
        self._slept_s = 0.0
        """In earlier processes of the program."""
        self._allowed_idle_s = job.limits.wall_s
        self._applying = False
        self._source_calls = frozenset(map(encode, job.harness.source_calls))
        self._program_fault: Outcome | None = None
        self._program: Process
        self._harness: Process | None = None
        self._start_program()

    # Reports

    @property
    def is_over(self) -> bool:
        """Whether all outcomes are known and every process has ended."""
        return self._stage is Stage.DONE and not self.processes

    @property
    def is_done(self) -> bool:
        """Whether all outcomes are known; some processes may still run."""
        return self._stage is Stage.DONE

    @property
    def needs_answers(self) -> bool:
        """Whether processes wait, now or later, for frames from this execution."""
        return bool(self._indirect) or self._calls_come_singly

    @property
    def active(self) -> Process:
        """The process that must answer next."""
        is_harness = self._stage in (Stage.HARNESS_LOADING, Stage.HARNESS) and not self._applying
        return self._harness if is_harness and self._harness is not None else self._program

    def report(self, tier: str) -> JobReport:
        """Return the report; only valid when `is_over`."""
        records: list[tuple[EntryPointCall, ...]] = [()] * len(self.job.calls)
        for index, record in self._records.items():
            records[index] = tuple(record.calls)
        return JobReport(
            self._load or _NOT_RUN, tuple(self._outcomes), self._cpu_us / 1e6, tier, tuple(self._used_s), tuple(records)
        )

    # Events

    def on_readable(self, process: Process) -> None:
        """Read and process the frames of a process."""
        n_received = 0
        try:
            while not self._ignores(process):
                self._take_all(process)
                n_new = process.receive() if n_received < _MAX_RECEIVED_AT_ONCE else 0
                if not n_new:
                    return
                n_received += n_new
        except WireError as error:
            if process is self._harness:
                self._end_activity(Outcome(OutcomeKind.CRASHED, error_type=BROKEN_HARNESS, message=str(error)[:300]))
            else:
                self._fail_all_calls(str(error))

    def on_exit(self, process: Process, notice: Notice) -> None:
        """Process the end of a process, after the frames that it sent before."""
        self.on_readable(process)
        process.exit = notice
        process.close()
        self.processes.remove(process)
        self._cpu_us += notice.cpu_us
        if process.abandoned or self.is_done:
            return
        self._last_use_s = process.measured_use_s(notice.cpu_us)
        if notice.status == _NO_PROCESS or _was_killed_by_others(process, notice):
            self.is_starved = True
        else:
            self._on_end(process, notice)

    def on_cpu(self, process: Process, cpu_us: int, waited_s: Callable[[], float | None], is_retry: bool) -> None:
        """Process a measurement of the processor time of `process`.

        Args:
            process: one of `processes`.
            cpu_us: processor time since its start, in microseconds.
            waited_s: returns the seconds that the job's processes waited for a processor; None if unknown.
            is_retry: whether the job was run before and slept too long by the clock.
        """
        if process is not self.active or process.abandoned or self.is_done:
            return
        if process.measured_use_s(cpu_us) > self.job.limits.cpu_s + _CPU_SLACK_S:
            self._end_activity(self._took_too_long())
            return
        if self._cpu_us + cpu_us > self.job.limits.cpu_s * (1 + self.job.limits.job_factor) * 1e6:
            self._end_exhausted()
            return
        self._idle_s += process.idle_s(cpu_us, self.job.limits.wall_s)
        if self._idle_s > self._allowed_idle_s:
            self._check_idle_time(waited_s(), is_retry)

    def _check_idle_time(self, waited_s: float | None, is_retry: bool) -> None:
        """End a job that sleeps too long. Time in which it waits for a processor does not count."""
        wall_s = self.job.limits.wall_s
        if waited_s is None and not is_retry:
            self.is_starved = True
        elif waited_s is None or self._idle_s > wall_s + waited_s:
            self._end_activity(replace(_time_limit(f"slept more than {wall_s:g} s"), error_type=SLEPT))
        elif self._idle_s > wall_s * _MAX_STRETCH:
            self.is_starved = True
        else:
            self._allowed_idle_s = wall_s + waited_s

    def abort(self) -> None:
        """Kill all processes; outcomes that are not known stay NOT_RUN."""
        self._stage = Stage.DONE
        self._kill_all()

    def _on_end(self, process: Process, notice: Notice) -> None:
        """Process the end of a process that has not finished its activity."""
        self._end_activity(outcome_of_end(process, notice))

    # Frames

    def _take_from_program(self, frame: Frame) -> None:
        if self._applying and frame.call == APPLY:
            self._take_applied(frame)
        elif self._stage is Stage.LOADING and frame.call == LOAD:
            self._take_load(frame)
        elif self._stage is Stage.DIRECT and frame.call == self._direct[0]:
            self._take_answer(frame)
        else:
            raise WireError(_UNEXPECTED)

    def _ignores(self, process: Process) -> bool:
        return self._stage is Stage.DONE or process.abandoned

    def _take_all(self, process: Process) -> None:
        """Process all frames that have been received."""
        while not self._ignores(process):
            if self._stage is Stage.DIRECT and process is self._program:
                self._take_values()
            frame = process.next_frame()
            if frame is None:
                return
            if process is not self._program:
                self._take_from_harness(frame)
            else:
                self._take_from_program(frame)

    def _take_values(self) -> None:
        """Process the answers to the next direct calls, as long as they are values, as most frames are."""
        direct, outcomes, limit_s = self._direct, self._outcomes, self.job.limits.cpu_s
        one_by_one = self._calls_come_singly or self.job.isolates_calls
        found = self._program.values((direct[0],) if one_by_one else direct)
        if not found.payloads:
            return
        for payload, seconds in zip(found.payloads, self._program.begin_after_all(found.cpu_us), strict=True):
            outcome = as_value(payload)
            index = direct.popleft()
            outcomes[index] = outcome if seconds <= limit_s else self._took_too_long()
            self._used_s[index] = seconds
        self._go_on()

    def _take_answer(self, frame: Frame) -> None:
        outcome = self._within_time(self._program, frame, as_outcome(frame))
        index = self._direct.popleft()
        self._outcomes[index], self._used_s[index] = outcome, self._program.begin_after(frame)
        self._go_on()

    def _take_load(self, frame: Frame) -> None:
        outcome = self._within_time(self._program, frame, _of_loading(frame))
        if outcome.kind is not OutcomeKind.VALUE:
            self._end_activity(outcome)
            return
        self._load = outcome
        self._program.begin_after(frame)
        self._stage = Stage.DIRECT
        self._next_stage()

    def _take_from_harness(self, frame: Frame) -> None:
        assert self._harness is not None
        if self._applying:
            raise WireError(_UNEXPECTED)
        if frame.tag == Tag.AHEAD:
            self._take_back(frame.call)
            return
        if (frame.tag == Tag.APPLY or self._stage is Stage.HARNESS) and self._has_unexpected_bytes():
            self._fail_all_calls(_UNEXPECTED)
            return
        if frame.tag == Tag.APPLY:
            self._take_call(frame.payload)
        elif self._stage is Stage.HARNESS_LOADING and frame.call == LOAD:
            if frame.tag == Tag.LOADED:
                self._stage = Stage.HARNESS
                self._ahead = ReadAhead(self._expected)
                self._begin_harness_call(frame)
            else:
                self._end_activity(_failure(self._harness_outcome(frame)))
        elif self._stage is Stage.HARNESS and frame.call == self._indirect[0]:
            outcome = self._within_time(self._harness, frame, self._harness_outcome(frame))
            self._record_given()
            self._outcomes[self._indirect.popleft()] = outcome
            if not self._indirect:
                self._finish()
            elif self.job.isolates_calls:
                self._kill_all()
                self._start_again()
            else:
                self._begin_harness_call(frame)
        else:
            raise WireError(_UNEXPECTED)

    def _has_unexpected_bytes(self) -> bool:
        """Return whether the program has written something though it was not called."""
        if self._ahead.failure is not None:  # it has ended
            return False
        self._program.receive()
        return self._program.has_unread

    def _take_back(self, n_answers: int) -> None:
        """Take back the last answers that the harness got for calls that it has not made."""
        if not 0 < n_answers <= len(self._given):
            raise WireError(_UNEXPECTED)
        del self._given[-n_answers:]
        self._has_left_answers = True

    def _take_call(self, arguments: bytes) -> None:
        """Send a call of the harness to the program, and the calls that are expected to follow it."""
        if arguments[:1] == b'"' and arguments not in self._source_calls:
            raise WireError("a source call that the job does not have")
        self._record_given()
        self._record_call(arguments)
        self._applying = True
        ahead = self._ahead
        is_ahead = bool(ahead.answers or ahead.failure)
        if self._has_left_answers or (is_ahead and not ahead.is_expected(arguments)):
            self.is_misled = True
        elif ahead.answers:
            self._pass_back()
        elif ahead.failure:
            self._end_activity(ahead.failure)
        else:
            ahead.ask(arguments)
            self._call_program([*ahead.asked])

    def _call_program(self, calls: Sequence[bytes]) -> None:
        """Send calls of the harness to the program, each as its encoded arguments."""
        if len(calls) == 1:
            self._program.send(Tag.APPLY, APPLY, calls[0])
        else:
            self._program.send(Tag.AHEAD, APPLY, marshal.dumps([*calls]))

    def _take_applied(self, frame: Frame) -> None:
        """Take the program's answer to a call of the harness."""
        answer = self._within_time(self._program, frame, self._as_answer(frame))
        if answer.kind is OutcomeKind.TIME_LIMIT:
            self._end_activity(answer)
            return
        self._program.note(frame)
        self._ahead.answer(frame, answer)
        if not self._ahead.asked:
            self._pass_back()

    def _pass_back(self) -> None:
        """Send the program's answers to the harness, checked and re-encoded against a tampered process."""
        assert self._harness is not None
        self._applying = False
        given = self._ahead.take()
        _, frame, answer = given[0]
        self._given = given[1:]
        if answer.kind is not OutcomeKind.VALUE:
            self._program_fault = answer
        if self._stage is Stage.HARNESS:
            self._records[self._indirect[0]].add_answer(answer)  # `_record_call` has made it
        if self._given:
            self._harness.send(Tag.AHEAD, APPLY, marshal.dumps([each.frame.payload for each in given]))
        else:
            self._harness.send(frame.tag, APPLY, _cleaned(frame.tag, frame))

    def _as_answer(self, frame: Frame) -> Outcome:
        """Return the program's answer to a harness call."""
        if frame.tag == Tag.VALUE:
            # Not validated here: the harness validates what it decodes, and so does the code that compares it.
            return Outcome(OutcomeKind.VALUE, frame.payload)
        if frame.tag == Tag.CHANGED and self.job.harness.is_trusted:
            raise WireError("unexpected changed arguments")
        return as_outcome(frame)

    def _record_call(self, arguments: bytes) -> None:
        if self._stage is Stage.HARNESS:
            budget = RECORD_FACTOR * self.job.limits.value_bytes
            self._records.setdefault(self._indirect[0], _Record(budget)).add_call(arguments)

    def _record_given(self) -> None:
        """Record the calls that the harness has made without asking, since it had their answers."""
        for arguments, _, answer in self._given:
            self._record_call(arguments)
            self._records[self._indirect[0]].add_answer(answer)
        self._given = []

    def _harness_outcome(self, frame: Frame) -> Outcome:
        """Distinguish the harness's own exceptions from those that the program raised and the harness did not catch."""
        outcome = as_outcome(frame)
        if outcome.kind is OutcomeKind.MEMORY_LIMIT and self._program_fault is not None:
            return self._program_fault
        if outcome.kind is not OutcomeKind.ERROR:
            return outcome
        *_, from_program = error_fields(frame)
        if from_program:
            return self._of_program(outcome)
        return replace(outcome, message=f"in the harness: {outcome.message}"[:300])

    def _of_program(self, raised: Outcome) -> Outcome:
        """Return the outcome of an expression that ended with an exception from the stand-in."""
        fault = self._program_fault
        if raised.error_type in _REFUSALS and (fault is None or fault.error_type != raised.error_type):
            return replace(raised, kind=OutcomeKind.OPAQUE)  # not an exception of the program with that name
        return fault or raised

    def _within_time(self, process: Process, frame: Frame, outcome: Outcome) -> Outcome:
        """Replace an outcome that took too long, so that the verdict does not depend on the time of measurement."""
        used_s = process.claimed_use_s(frame)
        if self._stage is Stage.HARNESS:
            index = self._indirect[0]
            self._used_s[index] = max(self._used_s[index], used_s)
        return outcome if used_s <= self.job.limits.cpu_s else self._took_too_long()

    def _took_too_long(self) -> Outcome:
        return _time_limit(f"more than {self.job.limits.cpu_s:g} s of processor time")

    # Stages

    def _start_program(self) -> None:
        self._stage = Stage.LOADING
        job = self.job
        self._applying = False
        self._ahead = ReadAhead(())
        self._slept_s += self._asleep_s()
        self._idle_s, self._allowed_idle_s = 0.0, job.limits.wall_s
        self._program = self._start(
            len(self._direct) + len(self._indirect) + 1,
            role="program",
            **self._sources(),
            calls=() if self._calls_come_singly else numbered(job.calls, self._next(self._direct)),
            serve=bool(self._indirect) or self._calls_come_singly,
            changes=not job.harness.is_trusted,
            items_s=job.limits.cpu_s * _ITEMS_SHARE,
        )

    def _next(self, calls: deque[int]) -> list[int]:
        """Return those of the calls that the next process gets."""
        return [*calls][: 1 if self.job.isolates_calls else None]

    def _go_on(self) -> None:
        """Continue after a direct call."""
        if self.job.isolates_calls and (self._direct or self._indirect):
            self._kill_all()
            self._start_again()
        else:
            self._next_stage()

    def _start_again(self) -> None:
        """Continue with the next call in new processes, unless others have used up what the job may use."""
        if self._may_start_again():
            self._start_program()
        else:
            self._stage = Stage.DONE

    def _sources(self) -> dict[str, object]:
        return {"preamble": plain(self.job.preamble), "program": plain(self.job.program)}

    def _start_harness(self) -> None:
        self._stage = Stage.HARNESS_LOADING
        job = self.job
        calls = [(index, job.calls[index]) for index in self._next(self._indirect)]
        self._harness = self._start(
            len(calls) + 1,
            role="harness",
            source=plain(job.harness.source),
            trusted=job.harness.is_trusted,
            records=[[*map(_recorded, record)] for record in job.harness.records],
            words=job.script is not None,
            expected=[*self._expected],
            calls=[(index, plain(call.expression), [*map(plain, call.imports)]) for index, call in calls],
        )
        self._program_fault = None

    def _start(self, n_activities: int, **fields: object) -> Process:
        limits = self.job.limits
        # Far more than all activities together may use, since the kernel counts whole ticks for this limit: a program
        # can make it count several times the real use. The real use is measured from outside.
        life_s = 2 * _N_CORES * (limits.cpu_s * n_activities + limits.wall_s)
        longest = 2 * limits.value_bytes + _FRAME_EXTRA  # an answer and the changed arguments
        process = self._spawn(min(math.ceil(life_s) + 1, _MAX_LIFE_S), longest)
        self.processes.append(process)
        name, method = read_entry_point(plain(self.job.entry_point))
        sent = {"entry": name, "method": method, "value_bytes": limits.value_bytes, **fields}
        process.send(Tag.JOB, LOAD, marshal.dumps(sent))
        return process

    def _next_stage(self) -> None:
        if self._direct:
            if self._calls_come_singly:
                ((index, call),) = numbered(self.job.calls, (self._direct[0],))
                is_last = len(self._direct) == 1 and not self._indirect
                self._program.send(Tag.CALL, index, marshal.dumps((call, not is_last)))
            return
        if self._indirect:
            self._start_harness()
        else:
            self._finish()

    def _begin_harness_call(self, frame: Frame) -> None:
        assert self._harness is not None
        self._program_fault = None
        self._harness.begin_after(frame)
        self._program.begin()

    def _finish(self) -> None:
        """Mark all outcomes as known. Kill a program that serves a harness; other processes end by themselves."""
        self._stage = Stage.DONE
        if self._harness is not None:
            self._program.kill()

    def _end_activity(self, outcome: Outcome) -> None:
        """End the current activity with `outcome` and kill its processes."""
        assert outcome.kind is not OutcomeKind.VALUE  # it may become the outcome of all remaining calls
        if self._applying and self._ahead.answers and self._harness is not None and self._harness.exit is None:
            self._ahead.failure = outcome  # of a call that the harness may not make
            self._program.kill()
            self._pass_back()
            return
        stage = self._stage
        self._kill_all()
        if stage is Stage.DONE:
            return
        if stage is Stage.LOADING:
            if self._load is not None:  # it loaded the first time and failed to load again: the other calls fail
                for index in (*self._direct, *self._indirect):
                    self._outcomes[index] = outcome
            self._load = self._load or outcome
            self._stage = Stage.DONE
            return
        if stage is Stage.HARNESS_LOADING:
            for index in self._indirect:
                self._outcomes[index] = outcome
            self._stage = Stage.DONE
            return
        pending = self._direct if stage is Stage.DIRECT else self._indirect
        self._outcomes[pending.popleft()] = outcome
        self._n_faults += self._is_costly(outcome)
        if self._direct or self._indirect:
            self._start_again()
        else:
            self._stage = Stage.DONE

    def _end_exhausted(self) -> None:
        """End a job whose calls together have used the time of a job, though each was within the limit of a call."""
        self._kill_all()
        self._load = self._load or self._took_too_long()
        self._stage = Stage.DONE

    def _fail_all_calls(self, reason: str) -> None:
        """Fail all calls of a program that writes unexpected bytes: any of its answers may be forged."""
        message = f"wrote to the sandbox's channel: {reason}"[:300]
        outcome = Outcome(OutcomeKind.CRASHED, error_type="BrokenChannel", message=message)
        self._kill_all()
        self._load = self._load or outcome
        self._outcomes = [outcome] * len(self.job.calls)
        self._stage = Stage.DONE

    def _may_start_again(self) -> bool:
        """Return whether the job may restart: both its costly faults and its sleep so far are within their limits."""
        limits = self.job.limits
        slept_s = self._slept_s + self._asleep_s()
        return self._n_faults <= limits.max_restarts and slept_s <= limits.wall_s * (limits.max_restarts + 1)

    def _asleep_s(self) -> float:
        """Return how long the current process has been idle, without the known waits for a processor."""
        return max(0.0, self._idle_s - (self._allowed_idle_s - self.job.limits.wall_s))

    def _is_costly(self, outcome: Outcome) -> bool:
        """Return whether a failed call took so long that a job may have only few of them."""
        return outcome.kind is OutcomeKind.TIME_LIMIT or self._last_use_s > self.job.limits.cpu_s * _COSTLY

    def _kill_all(self) -> None:
        for process in self.processes:
            process.kill()
        self._harness = None


def internal_error_report(job: Job, message: str, tier: str = "") -> JobReport:
    """Return the report of a job that the sandbox failed to run."""
    outcome = Outcome(OutcomeKind.INTERNAL_ERROR, message=message[:300])
    return JobReport(outcome, (outcome,) * len(job.calls), tier=tier)


def numbered(calls: Sequence[Call], indices: Collection[int]) -> list[tuple[int, str | bytes]]:
    """Return each direct call as (index, expression or encoded arguments)."""
    chosen = [calls[index] for index in indices]
    texts = [call.arguments or call.expression for call in chosen]
    if not {str}.issuperset(map(type, texts)):
        texts = [text if type(text) is bytes else plain(str(text)) for text in texts]
    return [*zip(indices, texts, strict=True)]


def _positions(places: Sequence[Place], wanted: Place) -> deque[int]:
    n = places.count(wanted)
    if n == len(places):
        return deque(range(n))
    return deque([position for position, place in enumerate(places) if place is wanted] if n else ())


def _of_loading(frame: Frame) -> Outcome:
    return _NULL if frame.tag == Tag.LOADED else _failure(as_outcome(frame))


def _failure(outcome: Outcome) -> Outcome:
    """Return the outcome of a failed load; a VALUE frame is not a valid answer to loading."""
    if outcome.kind is OutcomeKind.VALUE:
        raise WireError("an unexpected value")
    return outcome


def _cleaned(tag: bytes, frame: Frame) -> bytes:
    """Return the payload of a checked answer as it is sent to the harness."""
    if tag == Tag.ERROR:
        return json.dumps(error_fields(frame)).encode()
    if tag == Tag.CHANGED:
        changed = Changed.unpack(frame.payload)
        inner = frame._replace(tag=changed.tag, payload=changed.payload)
        return changed._replace(payload=_cleaned(changed.tag, inner)).pack()
    return frame.payload


def _recorded(call: EntryPointCall) -> tuple[bytes, bytes, bool, bytes]:
    """Return the fields of an `inside.changes.Recorded`."""
    answer = call.answer or _NOT_RUN
    return call.arguments, answer.value or answer.items or b"", answer.value is None, answer.arguments or b""


class _Record:
    """The calls of the entry point that one harness call made, within a budget of bytes."""

    __slots__ = ("_budget", "calls")

    def __init__(self, budget: int) -> None:
        self.calls: list[EntryPointCall] = []
        self._budget = budget

    def add_call(self, arguments: bytes) -> None:
        """Record a call that has no answer yet."""
        self._budget -= len(arguments) + _CALL_BYTES
        if self._budget >= 0:
            self.calls.append(EntryPointCall(arguments))
        elif not self.calls or self.calls[-1] is not TOO_MANY:
            self.calls.append(TOO_MANY)

    def add_answer(self, answer: Outcome) -> None:
        """Record the answer to the last call."""
        parts = (answer.value, answer.items, answer.arguments)
        self._budget -= sum(len(part) for part in parts if part is not None)
        if self.calls[-1] is TOO_MANY:
            return
        self.calls[-1] = self.calls[-1]._replace(answer=answer) if self._budget >= 0 else TOO_MANY


def plain(text: str) -> str:
    """Return a text that `marshal` can write."""
    return text if type(text) is str else str.__str__(text)  # marshal writes numpy's str as bytes, refuses others


def _time_limit(message: str) -> Outcome:
    return Outcome(OutcomeKind.TIME_LIMIT, message=message)


def _was_killed_by_others(process: Process, notice: Notice) -> bool:
    """Return whether the system (short of memory) or another user has killed the process."""
    killed = WIFSIGNALED(notice.status) and WTERMSIG(notice.status) == signal.SIGKILL
    return killed and not process.worker.jobs_can_kill_themselves and not _has_used_all_its_time(process, notice)


def _has_used_all_its_time(process: Process, notice: Notice) -> bool:
    return notice.cpu_us >= (process.cpu_limit_s - 0.1) * 1e6


def outcome_of_end(process: Process, notice: Notice) -> Outcome:
    """Return the outcome of an activity during which its process has ended."""
    if not WIFSIGNALED(notice.status):
        return Outcome(OutcomeKind.EXITED, message="ended its own process")
    number = WTERMSIG(notice.status)
    if number in (signal.SIGKILL, signal.SIGXCPU) and _has_used_all_its_time(process, notice):
        return _time_limit("used up the processor time of the whole job")
    try:
        name = signal.Signals(number).name
    except ValueError:  # a real-time signal
        name = f"signal {number}"
    return Outcome(OutcomeKind.CRASHED, error_type=name, message=f"killed by {name}")
