"""Trusted handle on one forked process: its channel, its clocks and its end; and what all of a job's have used up."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import Enum, auto
from functools import lru_cache
from time import monotonic

from codea1_env.facts.verdicts import Outcome, OutcomeKind
from codea1_env.sandbox.interface import Limits
from codea1_env.sandbox.local.worker import Worker
from codea1_env.sandbox.wire import Changed, Frame, FrameReader, Items, Notice, Op, Tag, Values, WireError, frame_bytes
from codea1_env.values import Malformed, validate

_MAX_MESSAGE = 300
_MAX_ERROR = 16_384  # bytes: its texts have at most 500 characters, each of up to twelve bytes
_SHORT, _MAX_REMEMBERED = 256, 8192  # bytes, values
_MAX_MATCHED_BYTES = 4096  # bytes
_RECEIVE_BYTES = 1 << 18
_CLOSED = -1
_MANY_BYTES = 4096  # the smallest buffer of a pipe
_MAX_INTERVAL_S = 0.1  # a few times the scheduler's tick

# No possessive groups: after one fails, Python 3.11 continues in the middle of what it matched (a bug).
_TEXT = rb'"[ !#-\[\]-~]*"'
_ATOM = rb"(?:null|true|false|-?(?:0|[1-9]\d{0,17})(?:\.\d{1,17})?|%b)" % _TEXT
_ATOMS = rb"\[(?:%b(?:,%b)*)?\]" % (_ATOM, _ATOM)
_ITEM = rb'(?:%b|%b|\{"[tsz]":%b\})' % (_ATOM, _ATOMS, _ATOMS)
_ITEMS = rb"\[(?:%b(?:,%b)*)?\]" % (_ITEM, _ITEM)
_PAIR = rb"\[%b,%b\]" % (_ATOM, _ITEM)
_PAIRS = rb"\[(?:%b(?:,%b)*)?\]" % (_PAIR, _PAIR)
_PLAIN_VALUE = re.compile(rb'%b|%b|\{"t":%b\}|\{"d":%b\}' % (_ITEM, _ITEMS, _ITEMS, _PAIRS))
"""Matches most values that programs return, and nothing that `validate` would refuse."""


class Process:
    """A program's or a harness's process; `incoming` and `outgoing` are our ends of its channel.

    `clock` gives the wall clock in seconds.
    """

    def __init__(
        self,
        number: int,
        worker: Worker,
        *,
        cpu_s: int,
        memory_mb: int,
        max_payload: int,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.number = number
        self.worker = worker
        self.exit: Notice | None = None
        self._clock = clock
        self.abandoned = False
        """Whether its further frames are ignored."""
        self.started = self._clock()
        """When its current activity began (monotonic clock)."""
        self.cpu_limit_s = cpu_s
        self.watched_events = 0
        """Events of the channel for which the scheduler waits; the scheduler sets this."""
        self.pid: int | None = None
        """In its zygote's pid namespace; None until the zygote has sent it."""
        self.is_cpu_requested = False
        """Whether a request for its processor time has been sent to its zygote and not been answered."""
        self.has_closed = False
        """Whether it has closed its end, so that it sends nothing more."""
        self.sends_much = False
        """Whether it may fill its pipe and then wait until this process reads."""
        self.output: bytearray | None = None
        """What a script has written to its standard output; None before it runs."""
        self._n_received = 0  # bytes since its last measurement
        self._excused_s = 0.0
        self._seen_at = self._resumed_at = self.started
        self._seen_us = 0
        self._claimed_us = 0
        self._base_us = 0
        self._is_base_checked = False
        self._unsent = bytearray()
        self._reader = FrameReader(max_payload)
        self.incoming, self.outgoing = worker.fork(number, cpu_s, memory_mb)

    # Frames

    def send(self, tag: bytes, call: int = 0, payload: bytes = b"") -> None:
        """Queue one frame and write as much as the channel accepts."""
        self._resumed_at = self._clock()
        self._unsent += frame_bytes(tag, call, payload)
        self.flush()

    @property
    def has_unsent(self) -> bool:
        """Whether `flush` must be called when the channel accepts more."""
        return bool(self._unsent)

    def flush(self) -> None:
        """Write as much as the channel accepts."""
        try:
            while self._unsent:
                del self._unsent[: os.write(self.outgoing, self._unsent)]
        except BlockingIOError:
            return
        except OSError:  # it has ended or closed its end; its exit notice will show which
            self._unsent.clear()

    def receive(self) -> int:
        """Read some bytes from the channel; return how many, 0 if there are none."""
        try:
            data = os.read(self.incoming, _RECEIVE_BYTES)
        except BlockingIOError:
            return 0
        self.has_closed = not data
        self._n_received += len(data)
        if self.output is None:
            self._reader.feed(data)
        else:
            self.output += data
        return len(data)

    def begin_output(self) -> None:
        """Take all further bytes as the standard output of a script."""
        self.output = bytearray(self._reader.rest())

    @property
    def has_unread(self) -> bool:
        """Whether some received bytes have not been read as frames."""
        return not self._reader.is_empty

    def next_frame(self) -> Frame | None:
        """Return the next frame if it has been received completely, else None.

        Raises:
            WireError: the received bytes are not frames.
        """
        return self._reader.next()

    def values(self, calls: Iterable[int]) -> Values:
        """Return the contents of the next received frames, as long as they are the values of `calls`, in order."""
        return self._reader.values(calls)

    # Clocks

    def note(self, frame: Frame) -> None:
        """Store the processor time that a frame states."""
        if frame.cpu_us > self._claimed_us:
            self._claimed_us = frame.cpu_us

    def begin_after(self, frame: Frame) -> float:
        """Start the clocks of the activity that follows a frame.

        Returns:
            The processor seconds of the activity that the frame ends, as the process itself reports them.
        """
        return self.begin_after_all((frame.cpu_us,))[0]

    def begin_after_all(self, cpu_times_us: Iterable[int]) -> list[float]:
        """Do the same as `begin_after` for several activities, given the times in the frames that end them."""
        used_s, base_us = [], self._base_us
        claimed_us = self._claimed_us
        for cpu_us in cpu_times_us:
            used_s.append((cpu_us - base_us) / 1e6)
            if cpu_us > claimed_us:
                claimed_us = cpu_us
            base_us = claimed_us
        self._claimed_us = claimed_us
        self.begin()
        return used_s

    def begin(self) -> None:
        """Start the clocks of an activity (loading, one call)."""
        self.started = self._clock()
        self._base_us = self._claimed_us
        self._is_base_checked = False

    def claimed_use_s(self, frame: Frame) -> float:
        """Return the processor seconds of the current activity, as the process itself reports them."""
        return (frame.cpu_us - self._base_us) / 1e6

    def measured_use_s(self, cpu_us: int) -> float:
        """Return the processor seconds of the current activity, as the zygote measures them.

        They count from the time that the process reported at the start of the activity; the first measurement is an
        upper bound of that time.
        """
        if not self._is_base_checked:
            self._base_us = min(self._base_us, cpu_us)
            self._is_base_checked = True
        return (cpu_us - self._base_us) / 1e6

    def idle_s(self, cpu_us: int, excusable_s: float) -> float:
        """Return the seconds in which it did not run, since the last measurement or the last frame sent to it.

        Of a long interval only the last `_MAX_INTERVAL_S` count: the scheduler was late. An interval in which the
        process sent much does not count, since it may have waited until this process reads; such intervals are excused
        up to `excusable_s` seconds in all.
        """
        now = self._clock()
        interval_s = min(now - max(self._seen_at, self.started, self._resumed_at), _MAX_INTERVAL_S)
        used_s = (cpu_us - self._seen_us) / 1e6
        self._seen_at, self._seen_us = now, cpu_us
        n_received, self._n_received = self._n_received, 0
        idle_s = max(0.0, interval_s - used_s)
        if n_received < _MANY_BYTES or self._excused_s + idle_s > excusable_s:
            return idle_s
        self.sends_much = True
        self._excused_s += idle_s
        return 0.0

    # Ending

    def kill(self) -> None:
        """Request that its zygote kills it; ignore its further frames."""
        self.abandoned = True
        if self.exit is None:
            self.worker.send_request(Op.KILL, self.number)

    def close(self) -> None:
        """Close the channel; idempotent."""
        for fd in {self.incoming, self.outgoing} - {_CLOSED}:
            os.close(fd)
        self.incoming = self.outgoing = _CLOSED


_MAX_STRETCH = 10  # a starved process may sleep this many times `wall_s` before the job is run again
_COSTLY = 0.25  # share of the limit


class Sleep(Enum):
    """What a process's sleep says about its program."""

    ALLOWED = auto()
    TOO_LONG = auto()
    """It has slept by its own will."""
    STARVED = auto()
    """The machine gave it no processor, or nobody knows: no fault of the program."""


class Spending:
    """What a job has used up of its limits: processor time, sleep, restarts. Values in, decisions out, no clock."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.cpu_us = 0
        """Processor time of the processes that have ended."""
        self.loading_us = 0
        """Of this, time that does not count as that of calls: for loading before each of them."""
        self._n_costly = 0
        self._idle_s = 0.0
        self._slept_s = 0.0
        """In earlier processes of the program."""
        self._allowed_idle_s = limits.wall_s

    def begin(self) -> None:
        """Begin to measure the sleep of a new process."""
        self._slept_s += self._asleep_s
        self._idle_s, self._allowed_idle_s = 0.0, self._limits.wall_s

    def is_all(self, more_us: int = 0) -> bool:
        """Whether the processor time of all calls together is used up, with that of a process that still runs."""
        used_us = self.cpu_us + more_us - self.loading_us
        return used_us > self._limits.cpu_s * (1 + self._limits.job_factor) * 1e6

    @property
    def has_loaded_too_often(self) -> bool:
        """Whether loading before each call has used up its own time, of what the processes have really used."""
        return min(self.loading_us, self.cpu_us) > self._limits.cpu_s * self._limits.job_factor * 1e6

    def idle(self, seconds: float) -> bool:
        """Add idle time; return whether it must be found out what it was spent on."""
        self._idle_s += seconds
        return self._idle_s > self._allowed_idle_s

    def judge_idle(self, waited_s: float | None, is_retry: bool) -> Sleep:
        """Decide about a process that was idle too long. Time in which it waits for a processor does not count.

        Args:
            waited_s: how long the job's processes waited for a processor; None if unknown.
            is_retry: whether the job was run before and slept too long by the clock.
        """
        wall_s = self._limits.wall_s
        if waited_s is None:
            return Sleep.TOO_LONG if is_retry else Sleep.STARVED
        if self._idle_s > wall_s + waited_s:
            return Sleep.TOO_LONG
        if self._idle_s > wall_s * _MAX_STRETCH:
            return Sleep.STARVED
        self._allowed_idle_s = wall_s + waited_s
        return Sleep.ALLOWED

    def fault(self, outcome: Outcome, used_s: float) -> None:
        """Add a call that has failed, after so much processor time: only a few may have taken long."""
        self._n_costly += outcome.kind is OutcomeKind.TIME_LIMIT or used_s > self._limits.cpu_s * _COSTLY

    def allows_restart(self) -> bool:
        """Whether both the costly faults and the sleep so far are within the limits."""
        n_times = self._limits.max_restarts
        return self._n_costly <= n_times and self._slept_s + self._asleep_s <= self._limits.wall_s * (n_times + 1)

    @property
    def _asleep_s(self) -> float:
        """How long the current process has been idle, without the known waits for a processor."""
        return max(0.0, self._idle_s - (self._allowed_idle_s - self._limits.wall_s))


_WITHOUT_PAYLOAD = {
    Tag.TOO_LARGE: Outcome(OutcomeKind.OUTPUT_LIMIT, message="returned a value larger than allowed"),
    Tag.MEMORY: Outcome(
        OutcomeKind.MEMORY_LIMIT, error_type="MemoryError", message="requested more memory than allowed"
    ),
}


def as_outcome(frame: Frame) -> Outcome:
    """Return the outcome of a call that a frame claims.

    Raises:
        WireError: it is not a valid claim.
    """
    fixed = _WITHOUT_PAYLOAD.get(frame.tag)
    if fixed is not None:
        return fixed
    if frame.tag == Tag.VALUE:
        return as_value(frame.payload)
    if frame.tag == Tag.OPAQUE:
        return Outcome(OutcomeKind.OPAQUE, message=printable(_start_of(frame.payload)))
    if frame.tag == Tag.ERROR:
        name, _, message, _ = error_fields(frame.payload)
        return Outcome(OutcomeKind.ERROR, error_type=name, message=message)
    if frame.tag == Tag.ITEMS:
        return _of_items(Items.unpack(frame.payload))
    if frame.tag == Tag.CHANGED:
        changed = Changed.unpack(frame.payload)
        answer = as_outcome(frame._replace(tag=changed.tag, payload=changed.payload))
        return replace(answer, arguments=changed.arguments)
    raise WireError(f"no outcome has the tag {frame.tag!r}")


def _of_items(items: Items) -> Outcome:
    text = printable(_start_of(items.description))
    if not items.items:
        return Outcome(OutcomeKind.OPAQUE, message=text)
    if items.items[:1] != b"[":
        raise WireError("the items are not a list")
    name = error_fields(items.error)[0] if items.error else ""
    return Outcome(OutcomeKind.OPAQUE, error_type=name, message=text, items=as_value(items.items).value)


def as_value(payload: bytes) -> Outcome:
    """Return the outcome of a call that claims to have returned an encoded value.

    Raises:
        WireError: the payload is not an encoded value.
    """
    return _short_value(payload) if len(payload) <= _SHORT else _value(payload)


def _value(payload: bytes) -> Outcome:
    if len(payload) > _MAX_MATCHED_BYTES or _PLAIN_VALUE.fullmatch(payload) is None:
        try:
            validate(payload)
        except Malformed as error:
            raise WireError(str(error)) from error
    return Outcome(OutcomeKind.VALUE, payload)


# Both runs of the solution and every right candidate return the same value.
_short_value = lru_cache(_MAX_REMEMBERED)(_value)


def error_fields(payload: bytes) -> tuple[str, str, str, bool]:
    """Return class, nearest builtin class, message and "raised by the program" of an ERROR's payload, made printable.

    Raises:
        WireError: it is not of that form.
    """
    if len(payload) > _MAX_ERROR:
        raise WireError(f"an error frame of {len(payload)} bytes")
    try:
        fields = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise WireError("an error frame that cannot be read") from error
    if not (isinstance(fields, list) and [type(field) for field in fields] == [str, str, str, bool]):
        raise WireError("an error frame that cannot be read")
    name, base, message = map(printable, fields[:3])
    return name[:100], base[:100], message, fields[3]


def _start_of(payload: bytes) -> str:
    return payload[: 4 * _MAX_MESSAGE].decode("utf-8", "replace")


def printable(text: str) -> str:
    """Return at most 300 characters, each printable or a blank."""
    return "".join(c if c.isprintable() else " " for c in text[:_MAX_MESSAGE])
