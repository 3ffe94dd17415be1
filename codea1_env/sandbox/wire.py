"""The messages between trusted code, a zygote and the processes that it forks. Standard library only, no state.

Two kinds of connection:

* one *control* socket per zygote, message-oriented, which only trusted code and the zygote use;
* one *channel* per forked process, a pipe in each direction: a stream of frames, each a header (tag, call, processor
  time used so far by the sender in microseconds, length) and a payload. The process at the far end is untrusted: each
  of its frames is an unverified claim about one call, and anything else ends the channel. Pipes, because a process
  writes each answer at once: a pipe joins these writes, whereas a socket keeps them apart, which costs the reader more.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

LOAD = 0xFFFF_FFFF
"""Call number of the frames about loading."""
APPLY = 0xFFFF_FFFE
"""Call number of the result of one call through the stand-in."""

HEADER = struct.Struct("<cIQI")
"""Header of a frame: tag, call, processor time in microseconds, length of the payload."""
REQUEST = struct.Struct("<cQII")
"""Header of a `Request`."""
NOTICE = struct.Struct("<cQiQI")
"""Layout of a `Notice`."""


class Tag:
    """First byte of a frame."""

    JOB = b"J"  # trusted -> process: the job, marshalled
    LOADED = b"L"  # process: ready for calls
    VALUE = b"V"  # process: encoded value
    OPAQUE = b"O"  # process: not plain data; the type's name
    TOO_LARGE = b"B"  # process: larger than `Limits.value_bytes`
    MEMORY = b"M"  # process: MemoryError
    ERROR = b"E"  # process: JSON [class, nearest builtin class, message, raised by the program]
    CALL = b"D"  # trusted -> program: a direct call, marshalled with whether it is the last frame
    APPLY = b"A"  # harness -> trusted -> program: encoded (args, kwargs)
    # trusted -> program: marshalled arguments of calls, which it answers one by one; trusted -> harness: marshalled
    # values, the answers to its call and to the next ones; harness: it has not used so many of the last answers
    AHEAD = b"H"
    ITEMS = b"I"  # program: the result of a harness call that is not plain data; an `Items`
    CHANGED = b"C"  # program: an answer and the arguments that it changed; a `Changed`
    OUTPUT = b"S"  # script: from here on, the bytes are not frames but its standard output


class Op:
    """First byte of a control message."""

    FORK = b"F"  # trusted -> zygote, with the channel's far ends attached: to write to, to read from
    KILL = b"K"
    CPU = b"C"  # request and reply: processor time of a process
    READY = b"R"  # zygote -> trusted, first message: b"R" and JSON
    REFUSED = b"N"  # zygote -> trusted, first message: b"N" and why the tier is not available
    EXIT = b"X"  # zygote -> trusted: a process has ended


class WireError(ValueError):
    """Bytes that are not frames."""


UNEXPECTED = "an unexpected frame"
"""Why a whole frame breaks a channel: its sender may not say that now."""


class Frame(NamedTuple):
    """One frame of a channel."""

    tag: bytes
    call: int
    cpu_us: int
    payload: bytes


class Request(NamedTuple):
    """A control message to the zygote."""

    op: bytes
    child: int
    cpu_s: int = 0
    """Hard limit on processor seconds of the process's whole life."""
    memory_mb: int = 0

    def pack(self) -> bytes:
        """Return its fixed-size form."""
        return REQUEST.pack(*self)


class Notice(NamedTuple):
    """A control message from the zygote."""

    op: bytes
    child: int
    status: int = 0
    """EXIT: wait status, or -1 if the process could not be made."""
    cpu_us: int = 0
    """User and system time so far."""
    pid: int = 0
    """In the zygote's pid namespace."""

    @classmethod
    def unpack(cls, data: bytes) -> Notice:
        """Read the fixed-size form."""
        return cls(*NOTICE.unpack(data))


class Values(NamedTuple):
    """The contents of consecutive VALUE frames."""

    cpu_us: list[int]
    """(n,)"""
    payloads: list[bytes]
    """(n,)"""


class Truth:
    """What `bool()` says of a result that is not plain data."""

    FALSE, TRUE, UNKNOWN = range(3)


_OPERATIONS = """
    call iter next len getitem setitem contains reversed enter exit neg pos abs invert int float complex index round
    trunc lt le gt ge add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod divmod rdivmod pow rpow
    matmul rmatmul and rand or ror xor rxor lshift rlshift rshift rrshift
"""
OPERATIONS = tuple(f"__{name}__" for name in _OPERATIONS.split())
"""The special methods of a result that is not plain data which a harness may use."""
N_UNARY = OPERATIONS.index("__lt__")
"""So many of them come first that no second operand can provide."""


class Items(NamedTuple):
    """What Python would see of a result that is not plain data, as far as it can be sent."""

    truth: int
    """One of `Truth`."""
    operations: int
    """Bit n is set iff its class has the method `OPERATIONS[n]`. Others fail as in one process."""
    can_repeat: bool
    """Whether it can be iterated more than once."""
    length: int
    """Its `len()`; -1 if it has none."""
    is_cut: bool
    """Whether it yields more than `items`."""
    description: bytes
    """Length of the result in UTF-8."""
    items: bytes
    """Encoded list; empty if it cannot be iterated."""
    error: bytes = b""
    """What it raises after `items`, as the payload of an ERROR frame; empty if it does not, or if that is not known."""

    def pack(self) -> bytes:
        """Return the payload of its frame."""
        flags = self.can_repeat | self.is_cut << 1 | self.truth << 2
        head = _ITEMS.pack(flags, self.operations, self.length, len(self.description), len(self.error))
        return head + self.description + self.error + self.items

    @classmethod
    def unpack(cls, payload: bytes) -> Items:
        """Read the payload of a frame.

        Raises:
            WireError: it is not of that form.
        """
        if len(payload) < _ITEMS.size:
            raise WireError("items that cannot be read")
        flags, operations, length, n_description, n_error = _ITEMS.unpack_from(payload)
        middle = _ITEMS.size + n_description
        end = middle + n_error
        if flags >> 2 > Truth.UNKNOWN or end > len(payload):
            raise WireError("items that cannot be read")
        stated = payload[_ITEMS.size : middle], payload[end:], payload[middle:end]
        return cls(flags >> 2, operations, bool(flags & 1), length, bool(flags & 2), *stated)


class Changed(NamedTuple):
    """An answer and the arguments after the call."""

    arguments: bytes
    """Encoded; an argument that is no longer plain data is replaced by its length."""
    tag: bytes
    """Kind of the answer's frame."""
    payload: bytes
    """What the answer's frame contains."""

    def pack(self) -> bytes:
        """Return the payload of its frame."""
        return _CHANGED.pack(self.tag, len(self.arguments)) + self.arguments + self.payload

    @classmethod
    def unpack(cls, payload: bytes) -> Changed:
        """Read the payload of a frame.

        Raises:
            WireError: it is not of that form.
        """
        if len(payload) < _CHANGED.size:
            raise WireError("changed arguments that cannot be read")
        tag, n_arguments = _CHANGED.unpack_from(payload)
        middle = _CHANGED.size + n_arguments
        if tag == Tag.CHANGED or middle > len(payload):
            raise WireError("changed arguments that cannot be read")
        return cls(payload[_CHANGED.size : middle], tag, payload[middle:])


_ITEMS, _CHANGED, _NOTE_LENGTH = struct.Struct("<BQqII"), struct.Struct("<cI"), struct.Struct("<I")
_HEADER_BYTES, _unpack_header, _VALUE = HEADER.size, HEADER.unpack_from, Tag.VALUE
_new_frame = tuple.__new__


def frame_bytes(tag: bytes, call: int = 0, payload: bytes = b"", cpu_us: int = 0) -> bytes:
    """Return the bytes of one frame."""
    return HEADER.pack(tag, call, cpu_us, len(payload)) + payload


def end_note(tag: bytes, payload: bytes, call: int) -> bytes:
    """Return the note about the exception that has ended a script, which follows its output: a frame and its length."""
    frame = frame_bytes(tag, call, payload)
    return frame + _NOTE_LENGTH.pack(len(frame))


def read_end_note(output: bytes) -> Frame | None:
    """Return the frame at the end of the output of a script that has failed; None if there is none. It is a claim."""
    if len(output) < _NOTE_LENGTH.size:
        return None
    (length,) = _NOTE_LENGTH.unpack(output[-_NOTE_LENGTH.size :])
    note = output[-_NOTE_LENGTH.size - length : -_NOTE_LENGTH.size]
    if not _HEADER_BYTES <= len(note) == length:
        return None
    tag, call, cpu_us, _ = _unpack_header(note)
    return Frame(tag, call, cpu_us, note[_HEADER_BYTES:])


class FrameReader:
    """Cuts a stream into frames, keeping at most one unfinished frame and what `feed` added last."""

    def __init__(self, max_payload: int) -> None:
        self._max_payload = max_payload
        self._buffer: bytes | bytearray = b""
        self._start = 0  # where the next frame begins

    @property
    def is_empty(self) -> bool:
        """Whether all received bytes have been read as frames."""
        return self._start == len(self._buffer)

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        if self._start == len(self._buffer):  # most answers arrive in one piece, which need not be copied
            self._buffer = data
        else:
            rest = self._buffer
            if not isinstance(rest, bytearray):
                rest = bytearray(rest)
            del rest[: self._start]
            rest += data
            self._buffer = rest
        self._start = 0

    def rest(self) -> bytes:
        """Remove and return the bytes that have not been read as frames."""
        rest = bytes(self._buffer[self._start :])
        self._buffer, self._start = b"", 0
        return rest

    def next(self) -> Frame | None:
        """Return the next whole frame, or None if more must be received first.

        Raises:
            WireError: the frame is longer than allowed.
        """
        buffer, start = self._buffer, self._start
        begin = start + _HEADER_BYTES
        if len(buffer) < begin:
            return None
        tag, call, cpu_us, length = _unpack_header(buffer, start)
        if length > self._max_payload:
            raise WireError(f"a frame of {length} bytes")
        end = begin + length
        if len(buffer) < end:
            return None
        self._start = end
        return _new_frame(Frame, (tag, call, cpu_us, bytes(buffer[begin:end])))  # faster than Frame(...)

    def values(self, calls: Iterable[int]) -> Values:
        """Return the contents of the next frames, as long as they are whole VALUE frames of these calls, in this order.

        Most frames of a program are, so this is one loop without a function call per frame. `next` returns any other
        frame.
        """
        buffer, start, n_here, longest = self._buffer, self._start, len(self._buffer), self._max_payload
        cpu_times: list[int] = []
        payloads: list[bytes] = []
        for expected in calls:
            begin = start + _HEADER_BYTES
            if begin > n_here:
                break
            tag, call, cpu_us, length = _unpack_header(buffer, start)
            end = begin + length
            if tag != _VALUE or call != expected or length > longest or end > n_here:
                break
            cpu_times.append(cpu_us)
            payloads.append(bytes(buffer[begin:end]))
            start = end
        self._start = start
        return Values(cpu_times, payloads)
