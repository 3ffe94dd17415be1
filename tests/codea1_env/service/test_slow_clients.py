"""Clients that do not send what they began, or do not read what they asked for, keep nobody out."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from codea1_env.sandbox import Sandbox
from codea1_env.service.bounds import ServiceBounds
from tests.support.serving import ServiceServer, half_sent, job, post, sent, serving
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def impatient(sandbox: Sandbox) -> Iterator[ServiceServer]:
    with serving(sandbox, bounds=ServiceBounds(client_s=0.5)) as server:
        yield server


def is_ended(client: socket.socket) -> bool:
    """Send one more byte, and return whether the server has ended the connection."""
    try:
        client.send(b"x", socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return False


@pytest.mark.parametrize(
    "sent", [b"", b"GET / HT", half_sent(10**6), b"GET /v1/ping HTTP/1.1\r\nHost: localhost\r\n\r\nGET"]
)
def test_a_request_that_comes_in_single_bytes_is_ended(impatient: ServiceServer, sent: bytes) -> None:
    with socket.create_connection(impatient.address, timeout=30) as client:
        client.sendall(sent)
        assert wait_until(lambda: is_ended(client), 30)


def test_a_body_that_does_not_come_is_refused(impatient: ServiceServer) -> None:
    with socket.create_connection(impatient.address, timeout=30) as client:
        client.sendall(half_sent())
        answer = b"".join(iter(lambda: client.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"the body did not arrive in time" in answer


def test_a_client_that_does_not_read_is_given_up(impatient: ServiceServer) -> None:
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(impatient.address)
        client.sendall(sent("'x' * 10**6") * 30)
        assert wait_until(lambda: is_ended(client), 30)


def test_a_connection_in_use_outlives_the_deadlines(impatient: ServiceServer) -> None:
    connection, end = http.client.HTTPConnection(*impatient.address, timeout=30), time.monotonic() + 1.5
    connection.connect()
    kept = connection.sock
    while time.monotonic() < end:
        connection.request("GET", "/v1/ping")
        assert connection.getresponse().read() == b'"pong"'
        time.sleep(0.05)
    assert connection.sock is kept
    connection.close()


def test_a_request_that_runs_long_is_answered(impatient: ServiceServer) -> None:
    status, answer = post(impatient, body=job("__import__('time').sleep(1.2)"))
    assert (status, answer[0]["outcomes"][0]["kind"]) == (200, "value")


def test_half_sent_requests_keep_nobody_out(sandbox: Sandbox) -> None:
    with serving(sandbox) as server:
        clients = [socket.create_connection(server.address, timeout=30) for _ in range(300)]
        for n, client in enumerate(clients):
            client.sendall(half_sent() if n % 2 else b"GET / HT")
        assert [post(server)[0] for _ in range(10)] == [200] * 10
        for client in clients:
            client.close()


@pytest.mark.parametrize("sent", [b"", half_sent(10**6)], ids=["head", "body"])
def test_many_half_requests_keep_nobody_out(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr("codea1_env.service.server._MOST_CONNECTIONS", 20)
    with serving(sandbox) as server, ExitStack() as open_ones:
        for _ in range(60):
            open_ones.enter_context(socket.create_connection(server.address, timeout=30)).sendall(sent)
        assert post(server)[0] == 200
        assert wait_until(lambda: len(server._server.server_state.connections) <= 21, 30)
