"""The sandboxed end of a channel, and the encoding of an outcome as a frame.

This code runs in the same process as an untrusted program, which may tamper with it: every frame is an unverified
claim.
"""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import Callable
from time import process_time_ns
from typing import Any, NamedTuple

from codea1_env.sandbox.wire import HEADER, Frame, Tag
from codea1_env.values.encoding import Opaque, TooLarge, encode

BUILTINS = dict(vars(builtins))  # as they were before any program ran
_MAX_MESSAGE = 300
_READ_BYTES = 1 << 16  # larger buffers are mapped and unmapped each time
_mro_of: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
_name_of: Callable[[type], str] = type.__dict__["__name__"].__get__
_pack_header, _unpack_header, _HEADER_BYTES = HEADER.pack, HEADER.unpack_from, HEADER.size
_write, _receive, _new = os.write, os.read, tuple.__new__
_VALUE = Tag.VALUE
exit_now = os._exit


class Channel:
    """Frames over two file descriptors; ends the process when the other side has closed."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    def receive(self) -> Frame:
        """Wait for the next frame. The other side sends only one at a time."""
        data = self._read()
        while len(data) < _HEADER_BYTES:
            data += self._read()
        tag, call, cpu_us, length = _unpack_header(data)
        if len(data) < _HEADER_BYTES + length:
            parts, missing = [data], _HEADER_BYTES + length - len(data)
            while missing:
                parts.append(self._read())
                missing -= len(parts[-1])
            data = b"".join(parts)
        return _new(Frame, (tag, call, cpu_us, data[_HEADER_BYTES:]))  # faster than Frame(...)

    def _read(self) -> bytes:
        data = _receive(self._incoming, _READ_BYTES)
        if not data:
            exit_now(0)
        return data

    def send(self, tag: bytes, call: int = 0, payload: bytes = b"") -> None:
        """Write one frame with the processor time used so far."""
        data = _pack_header(tag, call, process_time_ns() // 1000, len(payload)) + payload
        n_written = _write(self._outgoing, data)
        while n_written < len(data):
            data = data[n_written:]
            n_written = _write(self._outgoing, data)

    def send_value(self, call: int, value: object, max_bytes: int) -> None:
        """Report what a call returned."""
        try:
            payload = encode(value, max_bytes=max_bytes)
        except (Opaque, TooLarge) as error:
            answer = _as_refusal(error)
            self.send(answer.tag, call, answer.payload)
        else:
            self.send(_VALUE, call, payload)  # the usual case; making an `AnswerFrame` would cost the child page copies

    def send_error(self, call: int, error: BaseException, from_program: bool = False) -> None:
        """Report what a call raised."""
        answer = as_error_answer(error, from_program)
        self.send(answer.tag, call, answer.payload)


class AnswerFrame(NamedTuple):
    """Tag and payload of a frame about a call."""

    tag: bytes
    payload: bytes = b""


def as_answer(value: object, max_bytes: int) -> AnswerFrame:
    """Return the answer for the value that a call returned."""
    try:
        return _new(AnswerFrame, (_VALUE, encode(value, max_bytes=max_bytes)))
    except (Opaque, TooLarge) as error:
        return _as_refusal(error)


def _as_refusal(error: Opaque | TooLarge) -> AnswerFrame:
    if isinstance(error, TooLarge):
        return AnswerFrame(Tag.TOO_LARGE)
    return AnswerFrame(Tag.OPAQUE, str(error).encode("utf-8", "replace"))


def as_error_answer(error: BaseException, from_program: bool = False) -> AnswerFrame:
    """Return the answer for the exception that a call raised."""
    error.__traceback__ = None  # releases the stack frames and the memory that they hold
    if MemoryError in _mro_of(type(error)):
        return AnswerFrame(Tag.MEMORY)
    return AnswerFrame(Tag.ERROR, describe_error(error, from_program=from_program))


def describe_error(error: BaseException, name: str = "", from_program: bool = False) -> bytes:
    """Return the payload of an ERROR frame; `name` replaces the class's name."""
    kinds = _mro_of(type(error))
    base = next((_name_of(kind) for kind in kinds if _is_builtin_error(kind)), "Exception")
    try:
        message = str(error)[:_MAX_MESSAGE]
    except BaseException:  # noqa: BLE001  -- an untrusted __str__ may raise anything, SystemExit included
        message = ""
    own = _name_of(kinds[0])
    if own in BUILTINS and own != base:  # a class of the program's that is called like a built-in one
        own = f"the program's {own}"
    fields: list[Any] = [(name or own)[:100], base, message, from_program]
    return json.dumps(fields).encode()


def _is_builtin_error(kind: type) -> bool:
    return BUILTINS.get(_name_of(kind)) is kind
