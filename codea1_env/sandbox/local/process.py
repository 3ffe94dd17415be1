"""One forked process as trusted code sees it: its channel, its clocks and its end."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from time import monotonic

from codea1_env.facts.outcomes import Outcome, OutcomeKind
from codea1_env.sandbox.local.worker import Worker
from codea1_env.sandbox.wire import Changed, Frame, FrameReader, Items, Notice, Op, Tag, Values, WireError, frame_bytes
from codea1_env.values import Malformed, validate

_MAX_MESSAGE = 300
_MAX_ERROR = 16_384  # bytes: its texts have at most 500 characters, each of up to twelve bytes
_SHORT, _MAX_REMEMBERED = 256, 8192  # bytes, values
_MAX_GLANCED_AT = 4096  # bytes
_RECEIVE_BYTES = 1 << 18
_CLOSED = -1
_MUCH = 4096  # bytes: no pipe holds less
_MAX_INTERVAL_S = 0.1  # a few times as long as the scheduler's tick

# No possessive groups: where one fails, Python 3.11 goes on in the middle of what it tried.
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
    """A program's or a harness's process; `incoming` and `outgoing` are our ends of its channel."""

    def __init__(self, number: int, worker: Worker, *, cpu_s: int, memory_mb: int, max_payload: int) -> None:
        self.number = number
        self.worker = worker
        self.exit: Notice | None = None
        self.abandoned = False
        """Nothing that it still says counts."""
        self.started = monotonic()
        """When its present activity began."""
        self.cpu_limit_s = cpu_s
        self.listened = 0
        """Events of the channel that someone waits for; kept by whoever waits."""
        self.pid: int | None = None
        """As its zygote sees it, once that has said so."""
        self.is_asked = False
        """Whether its zygote has been asked what it has used, and has not answered."""
        self.is_silent = False
        """It has closed its end: nothing more can come."""
        self.says_much = False
        """Whether it may have to wait for us to listen."""
        self._n_heard = 0  # bytes since its last measurement
        self._excused_s = 0.0
        self._seen_at = self._resumed_at = self.started
        self._seen_us = 0
        self._claimed_us = 0
        self._base_us = 0
        self._is_base_checked = False
        self._unsent = bytearray()
        self._reader = FrameReader(max_payload)
        self.incoming, self.outgoing = worker.fork(number, cpu_s, memory_mb)

    # Talking

    def send(self, tag: bytes, call: int = 0, payload: bytes = b"") -> None:
        """Queue one frame and write what the channel takes."""
        self._resumed_at = monotonic()
        self._unsent += frame_bytes(tag, call, payload)
        self.flush()

    @property
    def has_unsent(self) -> bool:
        """Whether `flush` should be called when the channel takes more."""
        return bool(self._unsent)

    def flush(self) -> None:
        """Write what the channel takes."""
        try:
            while self._unsent:
                del self._unsent[: os.write(self.outgoing, self._unsent)]
        except BlockingIOError:
            return
        except OSError:  # it has ended or closed its end; its exit notice says which
            self._unsent.clear()

    def receive(self) -> int:
        """Read some of what has come; return how many bytes, 0 if there is nothing more."""
        try:
            data = os.read(self.incoming, _RECEIVE_BYTES)
        except BlockingIOError:
            return 0
        self.is_silent = not data
        self._n_heard += len(data)
        self._reader.feed(data)
        return len(data)

    @property
    def has_unread(self) -> bool:
        """Whether something has been received that was not taken."""
        return not self._reader.is_empty

    def next_frame(self) -> Frame | None:
        """Return the next frame of what was received, if it is all there.

        Raises:
            WireError: what came are no frames.
        """
        return self._reader.next()

    def values(self, calls: Iterable[int]) -> Values:
        """Return the values of calls, in their order, that come next in what was received."""
        return self._reader.values(calls)

    # Clocks

    def note(self, frame: Frame) -> None:
        """Remember the processor time that a frame states."""
        if frame.cpu_us > self._claimed_us:
            self._claimed_us = frame.cpu_us

    def begin_after(self, frame: Frame) -> float:
        """Start the clocks of the activity that follows a frame.

        Returns:
            The processor seconds of the activity that the frame ends, by the process's own account.
        """
        return self.begin_after_all((frame.cpu_us,))[0]

    def begin_after_all(self, cpu_times_us: Iterable[int]) -> list[float]:
        """Do what `begin_after` does for several activities, given what the frames that end them state."""
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
        self.started = monotonic()
        self._base_us = self._claimed_us
        self._is_base_checked = False

    def claimed_use_s(self, frame: Frame) -> float:
        """Return the processor seconds of the present activity by the process's own account."""
        return (frame.cpu_us - self._base_us) / 1e6

    def measured_use_s(self, cpu_us: int) -> float:
        """Return the processor seconds of the present activity by the zygote's measurement.

        The activity starts from what the process said that it had used, which its first measurement bounds.
        """
        if not self._is_base_checked:
            self._base_us = min(self._base_us, cpu_us)
            self._is_base_checked = True
        return (cpu_us - self._base_us) / 1e6

    def idle_s(self, cpu_us: int, excusable_s: float) -> float:
        """Return the seconds since the last measurement, or since it was sent something, in which it did not run.

        Of long intervals only the end counts: then it was we who were kept from measuring. One in which it has said
        much does not count at all, since it may have waited for us to listen; of those, up to `excusable_s` in all.
        """
        now = monotonic()
        interval_s = min(now - max(self._seen_at, self.started, self._resumed_at), _MAX_INTERVAL_S)
        used_s = (cpu_us - self._seen_us) / 1e6
        self._seen_at, self._seen_us = now, cpu_us
        n_heard, self._n_heard = self._n_heard, 0
        idle_s = max(0.0, interval_s - used_s)
        if n_heard < _MUCH or self._excused_s + idle_s > excusable_s:
            return idle_s
        self.says_much = True
        self._excused_s += idle_s
        return 0.0

    # Ending

    def kill(self) -> None:
        """Have it killed; nothing that it still says counts."""
        self.abandoned = True
        if self.exit is None:
            self.worker.tell(Op.KILL, self.number)

    def close(self) -> None:
        """Close the channel; idempotent."""
        for fd in {self.incoming, self.outgoing} - {_CLOSED}:
            os.close(fd)
        self.incoming = self.outgoing = _CLOSED


_WITHOUT_PAYLOAD = {
    Tag.TOO_LARGE: Outcome(OutcomeKind.OUTPUT_LIMIT, message="returned more than may travel"),
    Tag.MEMORY: Outcome(
        OutcomeKind.MEMORY_LIMIT, error_type="MemoryError", message="asked for more memory than allowed"
    ),
}


def as_outcome(frame: Frame) -> Outcome:
    """Return what a frame claims about a call.

    Raises:
        WireError: it claims nothing that can be.
    """
    fixed = _WITHOUT_PAYLOAD.get(frame.tag)
    if fixed is not None:
        return fixed
    if frame.tag == Tag.VALUE:
        return as_value(frame.payload)
    if frame.tag == Tag.OPAQUE:
        return Outcome(OutcomeKind.OPAQUE, message=printable(_start_of(frame.payload)))
    if frame.tag == Tag.ERROR:
        name, _, message, _ = error_fields(frame)
        return Outcome(OutcomeKind.ERROR, error_type=name, message=message)
    if frame.tag == Tag.ITEMS:
        return _of_items(Items.unpack(frame.payload))
    if frame.tag == Tag.CHANGED:
        changed = Changed.unpack(frame.payload)
        answer = as_outcome(frame._replace(tag=changed.tag, payload=changed.payload))
        return replace(answer, arguments=changed.arguments)
    raise WireError(f"no outcome has the tag {frame.tag!r}")


def _of_items(items: Items) -> Outcome:
    if items.items[:1] != b"[":
        raise WireError("items that are no list")
    text = printable(_start_of(items.description))
    return Outcome(OutcomeKind.OPAQUE, message=text, items=as_value(items.items).value)


def as_value(payload: bytes) -> Outcome:
    """Return the outcome of a call that claims to have returned an encoded value.

    Raises:
        WireError: it is none.
    """
    return _short_value(payload) if len(payload) <= _SHORT else _value(payload)


def _value(payload: bytes) -> Outcome:
    if len(payload) > _MAX_GLANCED_AT or _PLAIN_VALUE.fullmatch(payload) is None:
        try:
            validate(payload)
        except Malformed as error:
            raise WireError(str(error)) from error
    return Outcome(OutcomeKind.VALUE, payload)


# The same value comes from both runs of the solution and from every candidate that is right.
_short_value = lru_cache(_MAX_REMEMBERED)(_value)


def error_fields(frame: Frame) -> tuple[str, str, str, bool]:
    """Return class, nearest builtin class, message and "raised by the program" of an ERROR frame, made printable.

    Raises:
        WireError: it is not of that form.
    """
    if len(frame.payload) > _MAX_ERROR:
        raise WireError(f"an error frame of {len(frame.payload)} bytes")
    try:
        fields = json.loads(frame.payload)
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
