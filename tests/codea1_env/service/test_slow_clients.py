"""Clients that do not send what they began, or do not read what they asked for, keep nobody out."""

from __future__ import annotations

import json
import socket
import threading

import pytest

from codea1_env.sandbox import Sandbox
from codea1_env.service.bounds import ServiceBounds
from tests.support.serving import half_sent, post, serving
from tests.support.waiting import wait_until


def ended(client: socket.socket) -> bool:
    """Whether the server ends a connection, which takes until the client's limit otherwise."""
    try:
        return client.recv(65_536) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("sent", [b"", b"GET / HT"])
def test_a_head_that_does_not_come_ends_the_connection(sandbox: Sandbox, sent: bytes) -> None:
    with (
        serving(sandbox, bounds=ServiceBounds(head_s=0.2)) as server,
        socket.create_connection(server.address, timeout=30) as client,
    ):
        client.sendall(sent)
        assert ended(client)


def test_a_body_that_does_not_come_is_refused(sandbox: Sandbox) -> None:
    with (
        serving(sandbox, bounds=ServiceBounds(body_s=0.2)) as server,
        socket.create_connection(server.address, timeout=30) as client,
    ):
        client.sendall(half_sent())
        parts = [client.recv(65_536), client.recv(65_536)]  # head and body may come apart
        assert parts[0].startswith(b"HTTP/1.1 408 ")
        assert b"the body of the request did not come in time" in b"".join(parts)


@pytest.mark.slow
def test_single_bytes_do_not_prolong_a_deadline(sandbox: Sandbox) -> None:
    with (
        serving(sandbox, bounds=ServiceBounds(head_s=0.5)) as server,
        socket.create_connection(server.address, timeout=30) as client,
    ):
        stopped = threading.Event()

        def trickle() -> None:
            while not stopped.wait(0.05):
                try:
                    client.send(b"x")
                except OSError:
                    return

        thread = threading.Thread(target=trickle)
        thread.start()
        assert ended(client)
        stopped.set()
        thread.join()


def test_a_second_request_of_a_connection_has_deadlines_too(sandbox: Sandbox) -> None:
    with (
        serving(sandbox, bounds=ServiceBounds(head_s=0.2)) as server,
        socket.create_connection(server.address, timeout=30) as client,
    ):
        client.sendall(b"GET /v1/ping HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert wait_until(lambda: b"pong" in client.recv(65_536))
        client.sendall(b"GET /v1/p")
        assert ended(client)


def test_half_sent_requests_keep_nobody_out(sandbox: Sandbox) -> None:
    with serving(sandbox) as server:
        clients = [socket.create_connection(server.address, timeout=30) for _ in range(300)]
        for n, client in enumerate(clients):
            client.sendall(half_sent() if n % 2 else b"GET / HT")
        assert [post(server)[0] for _ in range(10)] == [200] * 10
        for client in clients:
            client.close()


def test_a_client_that_does_not_read_is_given_up(sandbox: Sandbox) -> None:
    body = json.dumps({"code": "print('x' * 10**6)", "language": "python"}).encode()
    head = f"POST /run_code HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    with serving(sandbox, bounds=ServiceBounds(response_s=0.2)) as server, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(server.address)
        client.sendall((head.encode() + b"Content-Type: application/json\r\n\r\n" + body) * 30)
        assert wait_until(lambda: not server.n_connections and server.admission.n_open == 0, 30)
