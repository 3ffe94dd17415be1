"""Deadlines of heads, bodies and readers, and the bound on connections."""

from __future__ import annotations

import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from codea1_env.sandbox import Sandbox
from codea1_env.service.bounds import ServiceBounds
from tests.support.serving import Gated, half_sent, post, serving
from tests.support.waiting import wait_until


def rest_of(client: socket.socket) -> bytes:
    found = b""
    while data := client.recv(65_536):
        found += data
    return found


@pytest.mark.parametrize(("sent", "part"), [(b"", "head"), (b"GET / HT", "head"), (half_sent(), "body")])
def test_a_request_that_does_not_come_is_ended(sandbox: Sandbox, sent: bytes, part: str) -> None:
    with (
        serving(sandbox, bounds=ServiceBounds(head_s=0.2, body_s=0.2)) as server,
        socket.create_connection(server.address, timeout=30) as client,
    ):
        client.sendall(sent)
        answer = rest_of(client)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert f"the {part} of the request did not come".encode() in answer


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
        assert client.recv(20).startswith(b"HTTP/1.1 408")
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
        assert rest_of(client).startswith(b"HTTP/1.1 408 ")


def test_half_sent_requests_keep_nobody_out(sandbox: Sandbox) -> None:
    with serving(sandbox, bounds=ServiceBounds(max_connections=20)) as server:
        clients = [socket.create_connection(server.address, timeout=30) for _ in range(60)]
        for n, client in enumerate(clients):
            client.sendall(half_sent() if n % 2 else b"GET / HT")
        assert [post(server)[0] for _ in range(10)] == [200] * 10
        for client in clients:
            client.close()


def test_what_is_no_http_is_answered_in_json(sandbox: Sandbox, capfd: pytest.CaptureFixture[str]) -> None:
    with serving(sandbox) as server, socket.create_connection(server.address, timeout=30) as client:
        client.sendall(b"\x16\x03\x01 nonsense\r\n\r\n")
        answer = rest_of(client)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b'"detail"' in answer
    assert capfd.readouterr().err == ""


def test_a_connection_too_many_is_told_503(sandbox: Sandbox) -> None:
    gated = Gated(sandbox)
    with serving(gated, bounds=ServiceBounds(max_connections=1)) as server, ThreadPoolExecutor(1) as pool:
        running = pool.submit(post, server)
        gated.entered.acquire()
        assert post(server) == (503, {"detail": "the server has too many connections: try again"})
        gated.gate.set()
        assert running.result()[0] == 200
        assert post(server)[0] == 200


def test_a_client_that_does_not_read_is_given_up(sandbox: Sandbox) -> None:
    body = json.dumps({"code": "print('x' * 10**6)", "language": "python"}).encode()
    head = f"POST /run_code HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    with serving(sandbox, bounds=ServiceBounds(response_s=0.2)) as server, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(server.address)
        client.sendall((head.encode() + b"Content-Type: application/json\r\n\r\n" + body) * 30)
        assert wait_until(lambda: not server.n_connections and server.admission.n_open == 0, 30)
