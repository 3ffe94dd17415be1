"""Odd requests end in one sentence and leave nothing held, and an honest client is answered after each of them."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Iterator

import pytest

from codea1_env.problems import ProblemSet
from codea1_env.sandbox import Sandbox
from codea1_env.service.bounds import ServiceBounds
from tests.support.serving import ServiceServer, post, serving
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def server(sandbox: Sandbox, toys: ProblemSet) -> Iterator[ServiceServer]:
    with serving(sandbox, toys, bounds=ServiceBounds(client_s=2.0, max_held_bytes=32 << 20)) as server:
        yield server


def request(body: bytes, *headers: str, path: str = "/judge", length: int | None = None) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", "Connection: close"]
    lines += [f"Content-Length: {len(body) if length is None else length}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


DEEP = b"[" * 40_000 + b"]" * 40_000
JUDGE = '{"problem_ids": ["toy/add"], "programs": ["def add(a, b): return a + b"], %s}'
ATTACKS = {
    "a gzip bomb": (request(gzip.compress(b" " * 50_000_000), "Content-Encoding: gzip"), 422),
    "a deep body": (request(DEEP), 422),
    "a deeper body": (request(DEEP * 5), 413),
    "deep jobs": (request(DEEP, path="/jobs"), 422),
    "a huge number": (request((JUDGE % f'"limits": {{"cpu_s": {"9" * 100_000}}}').encode()), 422),
    "a number that is not finite": (request((JUDGE % '"limits": {"cpu_s": 1e999}').encode()), 422),
    "a negative limit": (request((JUDGE % '"limits": {"memory_mb": -1}').encode()), 422),
    "a name twice": (request((JUDGE % '"golden": true, "golden": false').encode()), 422),
    "broken UTF-8": (request(b'{"problem_ids": ["\xff"]}'), 422),
    "a lone surrogate": (request((JUDGE % r'"suites": ["\ud800"]').encode()), 200),
    "a NUL": (request((JUDGE % r'"suites": ["\u0000"]').encode()), 200),
    "a body that ends early": (request(b"{", length=1000), 408),
    "a negative length": (request(b"{}", length=-1), 400),
    "a huge length": (request(b"{}", length=10**30), 400),
    "a length above the bound": (request(b"{}", length=10**12), 413),
    "chunks": (request(b"{}", "Transfer-Encoding: chunked"), 411),
    "headers without an end": (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 50_000, 400),
    "one endless header": (b"GET / HTTP/1.1\r\nA: " + b"b" * 1_000_000, 400),
    "an endless address": (b"GET /" + b"a" * 1_000_000, 400),
    "no HTTP": (b"\x16\x03\x01" * 1000, 400),
    "a query of every parameter": (request(b"{}", path="/judge?" + "a=b&" * 10_000), 422),
}


@pytest.mark.parametrize(("sent", "status"), ATTACKS.values(), ids=ATTACKS)
def test_an_odd_request_ends_in_a_sentence_and_holds_nothing(server: ServiceServer, sent: bytes, status: int) -> None:
    with socket.create_connection(server.address, timeout=30) as client:
        answer = b""
        try:
            client.sendall(sent)
            while part := client.recv(1 << 16):
                answer += part
        except ConnectionError:  # it was cut off while it sent
            assert status == 400
    head, _, body = answer.partition(b"\r\n\r\n")
    if answer:
        assert int(head.split()[1]) == status
    if status == 422:
        assert len(json.loads(body)["detail"]) < 1000
    assert post(server)[0] == 200
    assert wait_until(lambda: server._server.config.app._held.n_bytes == 0)
