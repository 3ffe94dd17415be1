"""Run programs on another machine: a sandbox that sends its jobs to `codea1 serve` over HTTP.

`load_sandbox("http://host:port")` returns it. It sends the token in the environment variable CODEA1_SERVE_TOKEN.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from http import HTTPStatus
from math import inf
from typing import Any

from codea1_env.errors import BrokenInput, SandboxError, UserError, message_of
from codea1_env.records.closing import Closing
from codea1_env.sandbox.interface import Guarantee, Job, JobReport
from codea1_env.sandbox.job_json import jobs_to_json, reports_from_json
from codea1_env.secret import require_address, secret_in, without

TOKEN_VARIABLE = "CODEA1_SERVE_TOKEN"
"""Environment variable with the token, of server and client."""

JOBS_PER_REQUEST = 256
LARGEST_ANSWER_BYTES = 256 << 20
"""Longest body of a response that is read."""
_PING_S = 10.0
_TRIES = 2
_LONGEST_WAIT_S = 60.0
_WAYS_TO_WAIT = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)


class TooLarge(UserError):
    """A request is larger than the server accepts, or its response than is read."""


class Service:
    """Sends requests to one server. Thread-safe: each request has a connection of its own."""

    def __init__(
        self, url: str, *, token_env: str = TOKEN_VARIABLE, timeout_s: float = 600.0, patience_s: float = 600.0
    ) -> None:
        """Make a client; it connects with the first request.

        Args:
            url: `http://host:port` or `https://host`, with a path where the server is behind one.
            token_env: environment variable with the server's token, if it needs one.
            timeout_s: longest silence of the server within one request.
            patience_s: how long a request is sent again while the server is full.

        Raises:
            UserError: as `require_address`.
        """
        self._parts, self.url = require_address("a sandbox's server", url), url.rstrip("/")
        self._timeout_s, self._patience_s = timeout_s, patience_s
        self._token_env = token_env

    def guarantee(self) -> Guarantee:
        """Return what the server's sandbox promises.

        Raises:
            UserError: it is not a server of this project.
            SandboxError: as `send`.
        """
        try:  # a server that is none of ours may be silent for long, which one of ours is only when it has work
            pong = json.loads(self.send("GET", "/v1/ping", silent_s=_PING_S))
            return Guarantee(json.loads(self.send("GET", "/") if pong == "pong" else b"")["sandbox"]["guarantee"])
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            if isinstance(error, UserError):
                raise
            raise UserError(f"{self.url} must be the address of a codea1 serve, and it answers as none does") from error

    def send(self, method: str, path: str, body: bytes | None = None, *, silent_s: float = inf) -> bytes:
        """Return the body of the response.

        Args:
            method: of HTTP.
            path: behind the server's address.
            body: of JSON, if any.
            silent_s: longest silence, and longest time for the body of the response, if that is less than `timeout_s`.

        Raises:
            UserError: the server refuses the request: its content, its size, its token; or the response is too large.
            SandboxError: the server does not answer, stays full, or fails.
        """
        end = time.monotonic() + self._patience_s
        wait_s, n_failed = 0.1, 0
        while True:
            try:
                status, received = self._once(method, path, body, min(silent_s, self._timeout_s))
            except (OSError, http.client.HTTPException) as error:
                n_failed += 1
                if n_failed == _TRIES:
                    raise SandboxError(
                        f"{self.url} does not answer: {type(error).__name__}: {message_of(error)}"
                    ) from error
                continue
            if status == HTTPStatus.OK:
                return received
            if status not in _WAYS_TO_WAIT or time.monotonic() + wait_s > end:
                raise self._failure(status, received)
            time.sleep(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    def _once(self, method: str, path: str, body: bytes | None, silent_s: float) -> tuple[int, bytes]:
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(str(self._parts.hostname), self._parts.port, timeout=silent_s)
        token = secret_in(self._token_env)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            connection.request(
                method, self._parts.path.rstrip("/") + path, body, headers | {"Content-Type": "application/json"}
            )
            with connection.getresponse() as response:
                return response.status, self._body_of(response, time.monotonic() + silent_s)
        finally:
            connection.close()

    def _body_of(self, response: http.client.HTTPResponse, end: float) -> bytes:
        content = bytearray()
        while part := response.read1(1 << 20):
            content += part
            if len(content) > LARGEST_ANSWER_BYTES:
                raise TooLarge(f"{self.url} answers with more than {LARGEST_ANSWER_BYTES} bytes")
            if time.monotonic() > end:
                raise TimeoutError("its answer did not end in time")
        if response.length:
            raise http.client.IncompleteRead(bytes(content[:100]), response.length)
        return bytes(content)

    def _failure(self, status: int, body: bytes) -> Exception:
        said = without(body.decode("utf-8", "replace"), secret_in(self._token_env))
        try:
            detail = str(json.loads(said)["detail"])
        except (ValueError, LookupError, TypeError, RecursionError):
            detail = " ".join(said[:200].split()) or "no reason"
        if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            return TooLarge(f"{self.url}: {detail}")
        is_ours = status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _WAYS_TO_WAIT
        return (SandboxError if is_ours else UserError)(f"{self.url}: {detail} ({status})")


class RemoteSandbox(Closing):
    """Runs jobs on the server of `codea1 serve`. Thread-safe; can be pickled."""

    def __init__(self, url: str, **settings: Any) -> None:
        """Make a sandbox; the arguments and errors are those of `Service`."""
        self._service = Service(url, **settings)

    @property
    def name(self) -> str:
        """The address, by which `load_sandbox` finds it again."""
        return self._service.url

    @property
    def guarantee(self) -> Guarantee:
        """What the server's sandbox promises.

        Raises:
            UserError: it is not a server of this project, or refuses the token.
            SandboxError: the server does not answer.
        """
        return self._service.guarantee()

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        """Run all jobs; reports in the order of the jobs.

        Raises:
            SandboxError: the server does not answer, or its sandbox cannot be used.
        """
        parts = [jobs[start : start + JOBS_PER_REQUEST] for start in range(0, len(jobs), JOBS_PER_REQUEST)]
        return [report for part in parts for report in self._reports(part)]

    def _reports(self, jobs: Sequence[Job]) -> list[JobReport]:
        try:
            reports = reports_from_json(self._service.send("POST", "/jobs", jobs_to_json(jobs)))
        except TooLarge as error:
            if len(jobs) > 1:
                half = len(jobs) // 2
                return self._reports(jobs[:half]) + self._reports(jobs[half:])
            (job,), half = jobs, len(jobs[0].calls) // 2
            if not half:
                raise SandboxError(str(error)) from error
            first, second = (
                self._reports([replace(job, calls=calls)]) for calls in (job.calls[:half], job.calls[half:])
            )
            return [_join_reports(*first, *second)]
        except BrokenInput as error:
            raise SandboxError(f"{self.name} did not return valid reports: {error}") from error
        if [len(report.outcomes) for report in reports] != [len(job.calls) for job in jobs]:
            raise SandboxError(f"{self.name} returned reports that do not match the jobs it was given")
        return reports

    def close(self) -> None:
        """Nothing to end: no connection stays open."""


def _join_reports(first: JobReport, second: JobReport) -> JobReport:
    """Return the report of a job of which two processes ran a part of the calls each."""
    return replace(
        first,
        load=second.load if first.loaded else first.load,
        outcomes=first.outcomes + second.outcomes,
        cpu_s=first.cpu_s + second.cpu_s,
        call_s=first.call_s + second.call_s,
        entry_point_calls=first.entry_point_calls + second.entry_point_calls,
    )


@cache
def shared_remote_sandbox(url: str) -> RemoteSandbox:
    """Return the sandbox of an address; in a process always the same one."""
    return RemoteSandbox(url)
