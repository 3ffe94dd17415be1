"""Requests to a SandboxFusion server over HTTP: connections kept open, retries, and whose fault a failure is."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from contextlib import suppress
from urllib.parse import SplitResult, urlsplit

from codea1_env.errors import SandboxError, UserError
from codea1_env.sandbox.fusion_schema import (
    CommandResult,
    CommandStatus,
    MalformedAnswer,
    RunAnswer,
    RunRequest,
    RunStatus,
)

__all__ = ["Endpoint", "Unanswered"]

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0
_CONNECT_S = 10.0
_QUEUE_S = 60.0  # how long a request may wait at the server before it runs
_MAX_ANSWER_BYTES = 64 << 20
_MAX_FAILURES_IN_A_ROW = 16


class Unanswered(Exception):
    """One request got no usable answer, after all retries: our failure, and the message says why."""


class _Passing(Exception):
    """What may be better next time."""


class Endpoint:
    """One server, until closed. Safe to use from any thread.

    Args:
        url: `http://host:port`, maybe with a path; the requests go to `run_code` below it.
        attempts: how often a request is sent before it is given up.

    Raises:
        UserError: no such address.
    """

    def __init__(self, url: str, *, attempts: int) -> None:
        self.url = url.rstrip("/").removesuffix("/run_code")
        self._address = _split(self.url)
        self._attempts = attempts
        self._n_failures = 0
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._busy: set[http.client.HTTPConnection] = set()

    def run(self, request: RunRequest) -> CommandResult | None:
        """Return what the server's process did; None if that is more than is read, which only a program brings about.

        Raises:
            Unanswered: the server answers, but not this.
            SandboxError: the server is not there, or is no SandboxFusion, or `close` was called.
        """
        body = json.dumps(request.to_json()).encode()
        timeout_s = request.run_timeout_s + _QUEUE_S
        pause_s = _FIRST_PAUSE_S
        # A server that fails all the time must not make each of thousands of jobs wait for all retries.
        n_left = self._attempts if self._n_failures < _MAX_FAILURES_IN_A_ROW else 1
        while True:
            n_left -= 1
            try:
                result = self._run_once(body, timeout_s)
            except (_Passing, OSError, http.client.HTTPException) as error:
                if n_left <= 0 or self._closed.is_set():
                    self._n_failures += 1
                    raise self._given_up(error) from error
            else:
                self._n_failures = 0
                return result
            self._closed.wait(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def close(self) -> None:
        """Close all connections, those in use included, for good; idempotent."""
        self._closed.set()
        with self._lock:
            idle, self._idle = self._idle, []
            for connection in self._busy:
                if connection.sock is not None:
                    with suppress(OSError):
                        connection.sock.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for an answer
        for connection in idle:
            connection.close()

    def _run_once(self, body: bytes, timeout_s: float) -> CommandResult | None:
        status, data = self._post(body, timeout_s)
        if len(data) > _MAX_ANSWER_BYTES:
            return None
        said = data[:200].decode("utf-8", "replace")
        if status >= 500 or status in (408, 429):
            raise _Passing(f"HTTP status {status}: {said}")
        if status in (400, 413, 422):
            raise Unanswered(f"the server at {self.url} refuses a request: HTTP status {status}: {said}")
        if status != 200:
            raise SandboxError(f"there is no SandboxFusion at {self.url}: HTTP status {status}")
        try:
            answer = RunAnswer.from_json(data)
        except MalformedAnswer as error:
            raise _Passing(str(error)) from error
        if answer.status is RunStatus.SANDBOX_ERROR or answer.run is None or answer.run.status is CommandStatus.ERROR:
            raise _Passing(f"SandboxError: {answer.message[:200]}")
        return answer.run

    def _post(self, body: bytes, timeout_s: float) -> tuple[int, bytes]:
        with self._lock:
            idle = self._idle.pop() if self._idle else None
        if idle is not None:
            try:
                return self._exchange(idle, body, timeout_s)
            except (ConnectionError, http.client.BadStatusLine):
                pass  # closed by the server while idle, which says nothing about the server
        return self._exchange(self._new_connection(), body, timeout_s)

    def _new_connection(self) -> http.client.HTTPConnection:
        is_secret = self._address.scheme == "https"
        kind = http.client.HTTPSConnection if is_secret else http.client.HTTPConnection
        return kind(self._address.hostname or "", self._address.port, timeout=_CONNECT_S)

    def _exchange(self, connection: http.client.HTTPConnection, body: bytes, timeout_s: float) -> tuple[int, bytes]:
        with self._lock:
            self._busy.add(connection)
        is_reusable = False
        try:
            if connection.sock is None:
                connection.connect()
            connection.sock.settimeout(timeout_s)
            if self._closed.is_set():
                raise ConnectionAbortedError("closed")
            headers = {"Content-Type": "application/json", "Accept": "application/json"}
            connection.request("POST", f"{self._address.path}/run_code", body, headers)
            response = connection.getresponse()
            data = response.read(_MAX_ANSWER_BYTES + 1)
            is_reusable = response.isclosed() and not response.will_close
        finally:
            with self._lock:
                self._busy.discard(connection)
                if is_reusable:
                    self._idle.append(connection)
            if not is_reusable:
                connection.close()
        return response.status, data

    def _given_up(self, error: Exception) -> Exception:
        if self._closed.is_set():
            return SandboxError("the sandbox was closed")
        if isinstance(error, _Passing):
            return Unanswered(f"the server at {self.url} fails: {error}")
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return SandboxError(f"the SandboxFusion server at {self.url} cannot be reached: {reason}")


def _split(url: str) -> SplitResult:
    try:
        address = urlsplit(url)
        is_usable = address.scheme in ("http", "https") and bool(address.hostname) and (address.port or 1) > 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise UserError(f"{url!r} is no address of a SandboxFusion server: give one like http://127.0.0.1:8080")
    return address
