"""A server of the judge, on any free port."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed")

from codea1_env.problems import ProblemSource
from codea1_env.sandbox import Job, JobReport, Sandbox
from codea1_env.service.bounds import ServiceBounds
from codea1_env.service.judging import ServedJudge
from codea1_env.service.server import ServiceServer
from tests.support.sandboxes import Wrapper

RIGHT, WRONG = "def add(a, b):\n    return a + b", "def add(a, b):\n    return a - b"
SUITE = "assert add(1, 2) == 3\nassert add(5, 0) == 5"
HALF_RIGHT = SUITE.replace("== 5", "== 6")


def serving(
    sandbox: Any, problems: ProblemSource = (), *, bounds: ServiceBounds | None = None, **settings: Any
) -> ServiceServer:
    """Return a server that is ready; the caller closes it."""
    return ServiceServer(ServedJudge(sandbox, problems, bounds=bounds), **({"port": 0} | settings))


def job(result: str = "1") -> list[dict[str, Any]]:
    """Return the body of a request to `/jobs`: a program whose only call has this result."""
    return [{"program": f"def f():\n    return {result}", "entry_point": "f", "calls": [["f()"]]}]


def half_sent(n_bytes: int = 100) -> bytes:
    """Return a request of which most of the body is missing."""
    return _request(n_bytes, b"{")


def sent(result: str = "1") -> bytes:
    """Return a whole request with the body `job(result)`."""
    body = json.dumps(job(result)).encode()
    return _request(len(body), body)


def _request(n_bytes: int, body: bytes) -> bytes:
    head = "POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return head.encode() + f"Content-Length: {n_bytes}\r\n\r\n".encode() + body


class Gated(Wrapper):
    """A sandbox that runs nothing until its gate opens."""

    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__(sandbox)
        self.gate, self.entered = threading.Event(), threading.Semaphore(0)

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        """Wait for the gate, then run all jobs."""
        self.entered.release()
        assert self.gate.wait(60)
        return super().run(jobs)


@contextmanager
def busy(sandbox: Sandbox, **bounds: Any) -> Iterator[tuple[ServiceServer, Gated, ThreadPoolExecutor, Future[Any]]]:
    """A server that runs its first request until the gate opens; a pool for others, and what the first gets."""
    gated = Gated(sandbox)
    with serving(gated, bounds=ServiceBounds(**bounds)) as server, ThreadPoolExecutor(4) as pool:
        running = pool.submit(post, server)
        gated.entered.acquire()
        yield server, gated, pool, running


def post(server: ServiceServer, path: str = "/jobs", body: object = None, **headers: str) -> tuple[int, Any]:
    """Return status and body of a request over a connection of its own."""
    status, text = asked(server, path, json.dumps(body or job()).encode(), **headers)
    return status, json.loads(text)


def asked(server: ServiceServer, path: str, data: bytes | None = None, **headers: str) -> tuple[int, str]:
    """Return status and text of a request over a connection of its own: POST with data, GET without."""
    with closing(http.client.HTTPConnection(*server.address, timeout=60)) as connection:
        method = "GET" if data is None else "POST"
        connection.request(method, path, data, {"Content-Type": "application/json"} | headers)
        response = connection.getresponse()
        return response.status, response.read().decode()
