"""A server that speaks SandboxFusion's `/run_code` and runs what it is sent in a sandbox of ours.

For programs of others that expect such a server: point SANDBOX_FUSION_ENDPOINT at it. Their protocols keep what they
are: where a script prints its own verdict (`__PASS__`), a hostile program in that script can print it too, whatever
runs it. Only values that are compared elsewhere cannot be forged.

There is no access control: whoever reaches the port can run programs, within the sandbox.
"""

from __future__ import annotations

import ipaddress
import json
import signal
import socket
import socketserver
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

from codea1_env.errors import SandboxError, UserError
from codea1_env.facts.outcomes import Outcome, OutcomeKind
from codea1_env.sandbox.fusion_server.schema import (
    BadRequest,
    CommandResult,
    CommandStatus,
    RunAnswer,
    RunRequest,
    RunStatus,
)
from codea1_env.sandbox.interface import Call, Job, JobReport, Limits, Sandbox
from codea1_env.values import Malformed
from codea1_env.values.tree import Tagged, parse

_MAX_STREAM_BYTES = 1 << 20
"""Kept of each of stdout and stderr, as the original does."""
_VALUE_BYTES = 5 << 20
"""Both streams in hexadecimal, and a little."""
_SLACK_S = 0.5
"""For the program's own clock to stop it, and bring what it has printed, before the sandbox does."""
_IDLE_S = 75.0
_CHUNK = 1 << 16
_MAX_THROWN_AWAY = 256 << 20
_LINGER_S = 0.1
_BUSY_BODY = b'{"detail": "too many connections"}'
_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_BUSY_BODY), _BUSY_BODY)
)


@dataclass(frozen=True, slots=True)
class ServerBounds:
    """What the server takes on."""

    max_body_bytes: int = 16 << 20
    """Of one request."""
    max_connections: int = 256
    """At the same time; the sandbox decides how many programs run at the same time."""
    max_wait_s: float = 1.0
    """How long one connection more waits for another to end before it is answered with 503. Never 0 in practice: that a
    client has closed a connection is noticed only when the connection's thread gets its turn."""
    memory_mb: int = 1024
    """Of a program, where the request does not say."""
    max_memory_mb: int = 8192
    """Of a program, whatever the request says."""


def answer_to(request: RunRequest, sandbox: Sandbox, bounds: ServerBounds) -> RunAnswer:
    """Run a posted program; a failure of the sandbox is the answer `SandboxError`."""
    try:
        report = sandbox.run([_job(request, bounds)])[0]
    except SandboxError as error:
        return _sandbox_error(str(error))
    if report.loaded:
        return _answer(report.outcomes[0], report)
    if report.load.kind is OutcomeKind.MEMORY_LIMIT:
        return _failed(report, "MemoryError\n")
    return _sandbox_error(f"our own program does not load: {report.load.summary}")


def _job(request: RunRequest, bounds: ServerBounds) -> Job:
    """Return the job whose only call runs the program."""
    timeout_s = request.run_timeout_s
    # Wall-clock time is meant only for sleepers: on a busy machine a program is not to blame for it.
    wall_s = 2 * timeout_s + 1
    limits = Limits(
        cpu_s=timeout_s + _SLACK_S,
        wall_s=wall_s + 2 * _SLACK_S,
        memory_mb=min(request.memory_mb or bounds.memory_mb, bounds.max_memory_mb),
        value_bytes=_VALUE_BYTES,
        max_restarts=0,
    )
    stdin = request.stdin.encode("utf-8", "surrogatepass")  # JSON may say anything
    call = f"run({request.code!a}, {stdin!r}, {timeout_s!r}, {wall_s!r}, {_MAX_STREAM_BYTES})"
    hint = "\n# numpy\n" if "numpy" in request.code else ""  # by which a sandbox tells who needs it ready
    return Job(_runner() + hint, "run", (Call(call),), limits=limits)


@cache
def _runner() -> str:
    return files("codea1_env").joinpath("sandbox/fusion_server/posted.py").read_text("utf-8")


def _answer(outcome: Outcome, report: JobReport) -> RunAnswer:
    kind = outcome.kind
    if outcome.value is not None:
        return _ran(outcome.value) or _failed(report, "the program has replaced its own output\n")
    if kind in (OutcomeKind.INTERNAL_ERROR, OutcomeKind.NOT_RUN):
        return _sandbox_error(outcome.summary)
    if kind is OutcomeKind.TIME_LIMIT:
        return RunAnswer(RunStatus.FAILED, run=CommandResult(CommandStatus.TIME_LIMIT_EXCEEDED, report.cpu_s))
    if kind is OutcomeKind.CRASHED:
        return _failed(report, f"{outcome.message}\n", _signal_code(outcome.error_type))
    return _failed(report, f"{outcome.summary}; what it printed is lost\n")


def _ran(value: bytes) -> RunAnswer | None:
    """Return what the program is said to have done; None if that cannot be, because it has meddled with our own."""
    try:
        tree = parse(value)
    except Malformed:
        return None
    match tree:
        case Tagged("t", [Tagged("b", out), Tagged("b", err), int(code), bool(is_late), float(elapsed_s)]):
            texts = [bytes.fromhex(stream)[:_MAX_STREAM_BYTES].decode("utf-8", "replace") for stream in (out, err)]
        case _:
            return None
    if is_late:
        late = CommandResult(CommandStatus.TIME_LIMIT_EXCEEDED, elapsed_s, None, *texts)
        return RunAnswer(RunStatus.FAILED, run=late)
    status = RunStatus.SUCCESS if code == 0 else RunStatus.FAILED
    return RunAnswer(status, run=CommandResult(CommandStatus.FINISHED, elapsed_s, code, *texts))


def _failed(report: JobReport, stderr: str, return_code: int = 1) -> RunAnswer:
    run = CommandResult(CommandStatus.FINISHED, report.cpu_s, return_code, stderr=stderr)
    return RunAnswer(RunStatus.FAILED, run=run)


def _sandbox_error(message: str) -> RunAnswer:
    return RunAnswer(RunStatus.SANDBOX_ERROR, message, CommandResult(CommandStatus.ERROR, stderr=message))


def _signal_code(name: str) -> int:
    return -signal.Signals[name].value if name in signal.Signals.__members__ else 1


class FusionServer(ThreadingHTTPServer):
    """Serves `POST /run_code` and `GET /v1/ping`: `serve_forever` until `stop` is called from another thread.

    Args:
        sandbox: where programs run; stays the caller's to close.
        host: address to listen on.
        port: 0 for any that is free; `url` tells which.
        bounds: what is taken on.
        allow_remote: whether other machines may reach it.

    Raises:
        UserError: it would be reachable from other machines, or the address cannot be had.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        sandbox: Sandbox,
        host: str = "127.0.0.1",
        port: int = 8080,
        *,
        bounds: ServerBounds | None = None,
        allow_remote: bool = False,
    ) -> None:
        if not (allow_remote or _is_loopback(host)):
            raise UserError(
                f"other machines can reach {host}, and anyone who reaches the server can run programs:"
                " it must be allowed explicitly"
            )
        self.sandbox = sandbox
        self.bounds = bounds or ServerBounds()
        self.is_stopping = False
        self._slots = threading.BoundedSemaphore(self.bounds.max_connections)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise UserError(f"cannot listen on {host}, port {port}: {error}") from error

    @property
    def url(self) -> str:
        """Address for clients."""
        host, port = str(self.server_address[0]), self.server_address[1]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def stop(self) -> None:
        """Take no more requests; call it from another thread than `serve_forever`. Idempotent."""
        self.is_stopping = True
        self.shutdown()
        self.server_close()

    def server_bind(self) -> None:
        """Bind without asking for the host's name, which may take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection, unless there are too many.

        While one waits, those after it wait in the system's queue.
        """
        if self._slots.acquire(timeout=self.bounds.max_wait_s):
            super().process_request(request, client_address)
            return
        with suppress(OSError):
            request.settimeout(_LINGER_S)
            request.sendall(_BUSY)
            request.recv(_CHUNK)  # what a client has sent and nobody has read would cost it the answer
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection, in its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that hang up or fall asleep; they are no fault of ours."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: FusionServer
    protocol_version = "HTTP/1.1"
    server_version = "codea1"
    timeout = _IDLE_S
    disable_nagle_algorithm = True
    wbufsize = -1  # headers and body in one packet

    def do_GET(self) -> None:
        if self.path == "/v1/ping":
            self._send(HTTPStatus.OK, "pong")
        elif self.path == "/":
            self._send(HTTPStatus.OK, {"run_code": f"{self.server.url}/run_code"})
        else:
            self._send(HTTPStatus.NOT_FOUND, {"detail": "Not Found"})

    def do_POST(self) -> None:
        if self.path != "/run_code":
            self._refuse(HTTPStatus.NOT_FOUND, "only /run_code is served here")
        elif self.headers.get_content_type() != "application/json":
            # Also keeps out web pages, which may post anything else to this machine's own addresses.
            self._refuse(HTTPStatus.UNPROCESSABLE_ENTITY, "the Content-Type must be application/json")
        elif not (self.headers.get("Content-Length") or "").isdecimal():
            self._refuse(HTTPStatus.LENGTH_REQUIRED, "a Content-Length is needed")
        elif int(self.headers["Content-Length"]) > self.server.bounds.max_body_bytes:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {self.server.bounds.max_body_bytes} bytes")
        elif self.server.is_stopping:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "the server is being stopped")
        else:
            self._run_code(self.rfile.read(int(self.headers["Content-Length"])))

    def _run_code(self, body: bytes) -> None:
        try:
            request = RunRequest.from_json(body)
        except BadRequest as error:
            fault = {"type": "value_error", "loc": ["body", *filter(None, [error.field])], "msg": str(error)}
            self._send(HTTPStatus.UNPROCESSABLE_ENTITY, {"detail": [fault]})
            return
        self._send(HTTPStatus.OK, answer_to(request, self.server.sandbox, self.server.bounds).to_json())

    def _refuse(self, status: HTTPStatus, detail: str) -> None:
        """Answer without having looked at the body; the connection cannot be used again."""
        self.close_connection = True
        self._send(status, {"detail": detail})
        for _ in range(_MAX_THROWN_AWAY // _CHUNK):  # or else the client may never see the answer
            if not self.rfile.read1(_CHUNK):
                return

    def _send(self, status: HTTPStatus, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  -- the base class names it
        """Log nothing: programs are nobody's business, and there are thousands a second."""


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
