"""The standard error of a container, read until its process has connected to our socket."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
from collections.abc import Iterator
from time import monotonic
from typing import Any

from codea1_env.errors import SandboxError

_MAX_BYTES = 10_000
_HEADER = struct.Struct(">BxxxI")  # which stream, how many bytes follow


class ContainerOutput:
    """The bytes of a stream that ends when the container ends."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._data = bytearray()
        self._has_ended = False

    def wait_for(self, other: socket.socket, deadline: float) -> bool:
        """Return True when `other` can be read (or accepted from), False if the container ends before that.

        Raises:
            SandboxError: neither happens until the deadline (monotonic clock).
        """
        poll = select.poll()
        poll.register(other, select.POLLIN)
        poll.register(self._fd, select.POLLIN)
        while not self._has_ended:
            ready = [fd for fd, _ in poll.poll(max(0.0, deadline - monotonic()) * 1000)]
            if other.fileno() in ready:
                return True
            if not ready:
                raise SandboxError("a container was started but did not connect in time")
            self._read()
        return False

    def last(self) -> str:
        """Return the last line that a container wrote before it ended; empty if it wrote none."""
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        while not self._has_ended and poll.poll(1000):
            self._read()
        lines = self._text().strip().splitlines()
        return lines[-1] if lines else ""

    def _read(self) -> None:
        try:
            data = os.read(self._fd, _MAX_BYTES)
        except OSError:
            data = b""
        self._has_ended = not data or len(self._data) > _MAX_BYTES
        self._data += data

    def _text(self) -> str:
        text, at = bytearray(), 0
        while at + _HEADER.size <= len(self._data):
            _, length = _HEADER.unpack_from(self._data, at)
            at += _HEADER.size + length
            text += self._data[at - length : at]
        return text.decode("utf-8", "replace")


@contextlib.contextmanager
def output_of(client: Any, name: str) -> Iterator[ContainerOutput]:
    """Yield the standard error of a container that is not started yet.

    Args:
        client: see `codea1_env.sandbox.docker.engine.connected`.
        name: of the container.
    """
    stream = client.attach_socket(name, {"stderr": 1, "stream": 1})
    try:
        yield ContainerOutput(stream.fileno())
    finally:
        stream._response.close()  # closes the stream and its connection, which the client no longer manages
