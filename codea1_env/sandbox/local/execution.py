"""One job from its first fork to its report: a state machine without threads, clocks or system calls of its own.

Theory of operation. A job has a program, calls that the program's process answers itself (direct calls), and calls that
a second process, the harness, evaluates. First the program loads (`LOADING`) and answers the direct calls (`DIRECT`):
all of them from one message or, if it might see them before it must answer (`reach`), one by one. If there are calls
for a harness, the program keeps running, the harness loads (`HARNESS_LOADING`) and evaluates them (`HARNESS`). Whenever
the harness calls the entry point, it is the program's turn, until its answer has been passed back (`relay`). So at any
moment exactly one process has its turn, and `_TRANSITIONS` lists all that it may say; whoever says anything else, or
speaks out of turn, has broken its channel: the program then fails all its calls, a harness the call that it evaluates.

A call that hangs or kills its process fails, and the others continue in new processes, as long as the job has not used
up its limits (`Spending`). What the machine is to blame for (`is_starved`) makes the scheduler run the job again.

Everything that happens arrives as an event: bytes can be read, a process has ended, its processor time was measured.
"""

from __future__ import annotations

import marshal
import math
import os
import signal
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum, auto
from os import WIFSIGNALED, WTERMSIG

from codea1_env.facts.entry_points import read_entry_point
from codea1_env.facts.verdicts import EntryPointCall, Outcome, OutcomeKind
from codea1_env.sandbox.interface import BROKEN_HARNESS, LOADED_TOO_OFTEN, SLEPT, Call, Job, JobReport, Place
from codea1_env.sandbox.local.process import Process, Sleep, Spending, as_outcome, as_value
from codea1_env.sandbox.local.reach import may_see_calls
from codea1_env.sandbox.local.relay import Relay, WrongForesight
from codea1_env.sandbox.wire import APPLY, LOAD, UNEXPECTED, Frame, Notice, Tag, WireError
from codea1_env.values import encode

_NULL = Outcome(OutcomeKind.VALUE, encode(None))
_NOT_RUN = Outcome(OutcomeKind.NOT_RUN)
_NOT_LOADED = replace(_NOT_RUN, error_type=LOADED_TOO_OFTEN, message="loading before each call took too long in all")
_CPU_SLACK_S = 0.05  # a call within its limit must not be stopped because of the time that measuring takes
_ITEMS_SHARE = 0.5  # share of the limit, for iterating a result that is not plain data
_MAX_RECEIVED_AT_ONCE = 1 << 22  # bytes; then other processes are read
_NO_PROCESS = -1
_N_CORES = os.cpu_count() or 1
_MAX_LIFE_S = 1 << 30
_FRAME_EXTRA = 16_384  # an error's texts, each character up to twelve bytes

Spawn = Callable[[int, int], Process]
"""(processor seconds in all, longest payload in bytes) -> a new process of the job's worker."""


class Stage(IntEnum):  # numbers have hashes without a call of Python, and each frame looks up three of these
    """What a job is doing."""

    LOADING = auto()
    DIRECT = auto()
    HARNESS_LOADING = auto()
    HARNESS = auto()
    DONE = auto()


class Turn(IntEnum):
    """Which process must send the next frame."""

    PROGRAM = auto()
    HARNESS = auto()


class FrameKind(IntEnum):
    """What a frame is about."""

    LOADED = auto()
    """Whether the sender has loaded its program."""
    ANSWER = auto()
    """What a call of the job has led to."""
    CALLS = auto()
    """The harness calls the entry point."""
    LEAVES = auto()
    """The harness has not used the last answers that it got ahead of its calls."""
    APPLIED = auto()
    """The program answers a call of the harness."""


class Execution:
    """A job that is being run."""

    def __init__(self, job: Job, spawn: Spawn, expected: Sequence[bytes] = ()) -> None:
        """Start a job. `expected` are the encoded arguments of the calls that its harness will probably make."""
        self.job = job
        self.is_starved = False
        """Whether the machine gave it no processor or no process, or killed it; then its outcomes do not count."""
        self.processes: list[Process] = []
        """All processes that have not ended."""
        self.n_received = 0
        """Bytes that they have sent so far."""
        self.is_misled = False
        """Whether it must run again without foresight."""
        self._spawn = spawn
        self._load: Outcome | None = None
        self._outcomes = [_NOT_RUN] * len(job.calls)
        places = [call.place for call in job.calls]
        self._direct = _positions(places, Place.PROGRAM)
        self._indirect = _positions(places, Place.HARNESS)
        may_look = (len(self._direct) > 1 and not job.isolates_calls) or bool(expected)
        may_look = may_look and any(map(may_see_calls, (plain(job.preamble), plain(job.program))))
        self._calls_come_singly = may_look and len(self._direct) > 1
        # Between single calls, less of a program's sleep is measured.
        self._expected = () if may_look or "sleep" in job.program else expected
        self._used_s = [0.0] * len(job.calls)
        self._last_use_s = 0.0
        """Processor seconds of the last activity during which a process ended."""
        self._spending = Spending(job.limits)
        self._relay = Relay(job)
        self._turn = Turn.PROGRAM
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
        return self._harness if self._turn is Turn.HARNESS and self._harness is not None else self._program

    def report(self, tier: str) -> JobReport:
        """Return the report; only valid when `is_over`."""
        return JobReport(
            self._load or _NOT_RUN,
            tuple(self._outcomes),
            self._spending.cpu_us / 1e6,
            tier,
            tuple(self._used_s),
            self._relay.records(),
        )

    # Events

    def on_readable(self, process: Process) -> None:
        """Read and process the frames of a process."""
        most = self.n_received + _MAX_RECEIVED_AT_ONCE
        try:
            while not self._ignores(process):
                self._take_all(process)
                n_new = process.receive() if self.n_received < most else 0
                if not n_new:
                    return
                self.n_received += n_new
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
        self._spending.cpu_us += notice.cpu_us
        if process.abandoned or self.is_done:
            return
        self._last_use_s = process.measured_use_s(notice.cpu_us)
        is_killed = WIFSIGNALED(notice.status) and WTERMSIG(notice.status) == signal.SIGKILL
        # By the system, which is short of memory, or by another user.
        is_killed = is_killed and not process.worker.jobs_can_kill_themselves
        if notice.status == _NO_PROCESS or (is_killed and not _has_used_all_its_time(process, notice)):
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
        is_loading_apart = self.job.isolates_calls and self._stage is Stage.LOADING
        if self._spending.is_all(0 if is_loading_apart else cpu_us):
            self._end_exhausted()
            return
        wall_s = self.job.limits.wall_s
        if self._spending.idle(process.idle_s(cpu_us, wall_s)):
            sleep = self._spending.judge_idle(waited_s(), is_retry)
            if sleep is Sleep.TOO_LONG:
                self._end_activity(replace(_time_limit(f"slept more than {wall_s:g} s"), error_type=SLEPT))
            self.is_starved |= sleep is Sleep.STARVED

    def abort(self) -> None:
        """Kill all processes; outcomes that are not known stay NOT_RUN."""
        self._stage = Stage.DONE
        self._kill_all()

    def _on_end(self, process: Process, notice: Notice) -> None:
        """Process the end of a process that has not finished its activity."""
        self._end_activity(outcome_of_end(process, notice))

    # Frames

    def _take(self, process: Process, frame: Frame) -> None:
        """Do what follows from a frame."""
        is_program = process is self._program
        kind = _KIND_BY_TAG.get(frame.tag) or _KIND_BY_CALL.get(frame.call, FrameKind.ANSWER)
        step = _TRANSITIONS.get((self._stage, self._turn, kind))
        if step is None or is_program is not (self._turn is Turn.PROGRAM):
            raise WireError(UNEXPECTED)
        if not is_program and self._has_unexpected_bytes():
            self._fail_all_calls(UNEXPECTED)
            return
        try:
            step(self, frame)
        except WrongForesight:
            self.is_misled = True

    def _ignores(self, process: Process) -> bool:
        return self._stage is Stage.DONE or process.abandoned or self.is_misled

    def _take_all(self, process: Process) -> None:
        """Process all frames that have been received."""
        while not self._ignores(process):
            if self._stage is Stage.DIRECT and process is self._program:
                self._take_values()
            frame = process.next_frame()
            if frame is None:
                return
            self._take(process, frame)

    def _take_values(self) -> None:
        """Process the answers to the next direct calls, as long as they are values, as most frames are."""
        direct, outcomes, limit_s = self._direct, self._outcomes, self.job.limits.cpu_s
        one_by_one = self._calls_come_singly or self.job.isolates_calls
        values = self._program.values((direct[0],) if one_by_one else direct)
        if not values.payloads:
            return
        for payload, seconds in zip(values.payloads, self._program.begin_after_all(values.cpu_us), strict=True):
            outcome = as_value(payload)
            index = direct.popleft()
            outcomes[index] = outcome if seconds <= limit_s else self._took_too_long()
            self._used_s[index] = seconds
        self._go_on()

    def _take_answer(self, frame: Frame) -> None:
        if frame.call != self._direct[0]:
            raise WireError(UNEXPECTED)
        outcome = self._within_time(self._program, frame, as_outcome(frame))
        index = self._direct.popleft()
        self._outcomes[index], self._used_s[index] = outcome, self._program.begin_after(frame)
        self._go_on()

    def _take_load(self, frame: Frame) -> None:
        loading = _NULL if frame.tag == Tag.LOADED else _failure(as_outcome(frame))
        outcome = self._within_time(self._program, frame, loading)
        if outcome.kind is not OutcomeKind.VALUE:
            self._end_activity(outcome)
            return
        self._load = outcome
        if self.job.isolates_calls:
            self._spending.loading_us += round(self._program.claimed_use_s(frame) * 1e6)
        self._program.begin_after(frame)
        self._stage = Stage.DIRECT
        self._next_stage()

    def _take_harness_load(self, frame: Frame) -> None:
        if frame.tag == Tag.LOADED:
            self._stage = Stage.HARNESS
            self._begin_harness_call(frame, self._expected)
        else:
            self._end_activity(_failure(self._relay.outcome(frame)))

    def _take_result(self, frame: Frame) -> None:
        """Take what the harness found for a call of the job."""
        assert self._harness is not None
        if frame.call != self._indirect[0]:
            raise WireError(UNEXPECTED)
        outcome = self._within_time(self._harness, frame, self._relay.outcome(frame))
        self._outcomes[self._indirect.popleft()] = outcome
        if not self._indirect:
            self._finish()
        elif self.job.isolates_calls:
            self._kill_all()
            self._start_again()
        else:
            self._begin_harness_call(frame)

    def _has_unexpected_bytes(self) -> bool:
        """Return whether the program has written something though it was not called."""
        if self._relay.ending is not None:
            return False
        self._program.receive()
        return self._program.has_unread

    def _take_leftover(self, frame: Frame) -> None:
        self._relay.take_back(frame.call)

    def _take_call(self, frame: Frame) -> None:
        """Send a call of the harness to the program, and the calls that are expected to follow it."""
        calls = self._relay.ask(frame.payload)
        self._turn = Turn.PROGRAM
        if calls:
            self._call_program(calls)
        elif self._relay.has_answers:
            self._pass_back()
        elif self._relay.ending is not None:
            self._end_activity(self._relay.ending)

    def _call_program(self, calls: Sequence[bytes]) -> None:
        """Send calls of the harness to the program, each as its encoded arguments."""
        if len(calls) == 1:
            self._program.send(Tag.APPLY, APPLY, calls[0])
        else:
            self._program.send(Tag.AHEAD, APPLY, marshal.dumps([*calls]))

    def _take_applied(self, frame: Frame) -> None:
        """Take the program's answer to a call of the harness."""
        answer = self._within_time(self._program, frame, self._relay.answer_of(frame))
        if answer.kind is OutcomeKind.TIME_LIMIT:
            self._end_activity(answer)
            return
        self._program.note(frame)
        if self._relay.answer(frame, answer):
            self._pass_back()

    def _pass_back(self) -> None:
        """Send the program's answers to the harness."""
        assert self._harness is not None
        tag, payload = self._relay.take()
        self._turn = Turn.HARNESS
        self._harness.send(tag, APPLY, payload)

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
        self._stage, self._turn = Stage.LOADING, Turn.PROGRAM
        job = self.job
        self._spending.begin()
        self._program = self._start(
            len(self._direct) + len(self._indirect) + 1,
            role="program",
            **self._sources(),
            calls=() if self._calls_come_singly else number_calls(job.calls, self._next(self._direct)),
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
        self._stage = Stage.DONE
        if self._spending.has_loaded_too_often:
            for index in (*self._direct, *self._indirect):
                self._outcomes[index] = _NOT_LOADED
        elif self._may_start_again():
            self._start_program()

    def _sources(self) -> dict[str, object]:
        return {"preamble": plain(self.job.preamble), "program": plain(self.job.program)}

    def _start_harness(self) -> None:
        self._stage, self._turn = Stage.HARNESS_LOADING, Turn.HARNESS
        job = self.job
        self._relay.begin()
        calls = [(index, job.calls[index]) for index in self._next(self._indirect)]
        self._harness = self._start(
            len(calls) + 1,
            role="harness",
            source=plain(job.harness.source),
            trusted=job.harness.is_trusted,
            records=[[*map(_record_fields, record)] for record in job.harness.records],
            words=job.script is not None,
            expected=[*self._expected],
            calls=[(index, plain(call.expression), [*map(plain, call.imports)]) for index, call in calls],
        )

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
                ((index, call),) = number_calls(self.job.calls, (self._direct[0],))
                is_last = len(self._direct) == 1 and not self._indirect
                self._program.send(Tag.CALL, index, marshal.dumps((call, not is_last)))
            return
        if self._indirect:
            self._start_harness()
        else:
            self._finish()

    def _begin_harness_call(self, frame: Frame, expected: Sequence[bytes] = ()) -> None:
        assert self._harness is not None
        self._relay.begin(self._indirect[0], expected)
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
        is_called = self._turn is Turn.PROGRAM and self._harness is not None and self._harness.exit is None
        if is_called and self._relay.has_answers:  # the harness may not come to this call
            self._relay.end(outcome)
            self._program.kill()
            self._pass_back()
            return
        stage, self._stage = self._stage, Stage.DONE
        self._kill_all()
        if stage is Stage.LOADING:
            if self._load is not None:  # it loaded the first time and failed to load again: the other calls fail
                for index in (*self._direct, *self._indirect):
                    self._outcomes[index] = outcome
            self._load = self._load or outcome
        elif stage is Stage.HARNESS_LOADING:
            for index in self._indirect:
                self._outcomes[index] = outcome
        elif stage is not Stage.DONE:
            pending = self._direct if stage is Stage.DIRECT else self._indirect
            self._outcomes[pending.popleft()] = outcome
            self._spending.fault(outcome, self._last_use_s)
            if self._direct or self._indirect:
                self._start_again()

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
        return self._spending.allows_restart()

    def _kill_all(self) -> None:
        for process in self.processes:
            process.kill()
        self._harness = None


_TRANSITIONS: Mapping[tuple[Stage, Turn, FrameKind], Callable[[Execution, Frame], None]] = {
    # Each comment says where it leads to, if all goes well.
    (Stage.LOADING, Turn.PROGRAM, FrameKind.LOADED): Execution._take_load,  # DIRECT
    (Stage.DIRECT, Turn.PROGRAM, FrameKind.ANSWER): Execution._take_answer,  # at last HARNESS_LOADING or DONE
    (Stage.HARNESS_LOADING, Turn.HARNESS, FrameKind.LOADED): Execution._take_harness_load,  # HARNESS
    (Stage.HARNESS_LOADING, Turn.HARNESS, FrameKind.CALLS): Execution._take_call,  # the program's turn
    (Stage.HARNESS_LOADING, Turn.PROGRAM, FrameKind.APPLIED): Execution._take_applied,  # the harness's turn
    (Stage.HARNESS, Turn.HARNESS, FrameKind.CALLS): Execution._take_call,  # the program's turn
    (Stage.HARNESS, Turn.PROGRAM, FrameKind.APPLIED): Execution._take_applied,  # the harness's turn
    (Stage.HARNESS, Turn.HARNESS, FrameKind.LEAVES): Execution._take_leftover,
    (Stage.HARNESS, Turn.HARNESS, FrameKind.ANSWER): Execution._take_result,  # after the last one DONE
}
_KIND_BY_TAG = {Tag.APPLY: FrameKind.CALLS, Tag.AHEAD: FrameKind.LEAVES}
_KIND_BY_CALL = {LOAD: FrameKind.LOADED, APPLY: FrameKind.APPLIED}


def internal_error_report(job: Job, message: str, tier: str = "") -> JobReport:
    """Return the report of a job that the sandbox failed to run."""
    outcome = Outcome(OutcomeKind.INTERNAL_ERROR, message=message[:300])
    return JobReport(outcome, (outcome,) * len(job.calls), tier=tier)


def number_calls(calls: Sequence[Call], indices: Collection[int]) -> list[tuple[int, str | bytes]]:
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


def _failure(outcome: Outcome) -> Outcome:
    """Return the outcome of a failed load; a VALUE frame is not a valid answer to loading."""
    if outcome.kind is OutcomeKind.VALUE:
        raise WireError("an unexpected value")
    return outcome


def _record_fields(call: EntryPointCall) -> tuple[bytes, bytes, bool, bytes]:
    """Return the fields of an `inside.changes.Recorded`."""
    answer = call.answer or _NOT_RUN
    return call.arguments, answer.value or answer.items or b"", answer.value is None, answer.arguments or b""


def plain(text: str) -> str:
    """Return a text that `marshal` can write."""
    return text if type(text) is str else str.__str__(text)  # marshal writes numpy's str as bytes, refuses others


def _time_limit(message: str) -> Outcome:
    return Outcome(OutcomeKind.TIME_LIMIT, message=message)


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
