"""Senders and bodies are checked before a body is read."""

from __future__ import annotations

import http.client
import socket

import pytest

from codea1_env.errors import UserError
from codea1_env.sandbox import Job, Sandbox
from codea1_env.sandbox.remote import RemoteSandbox
from codea1_env.service.bounds import ServiceBounds
from tests.support.serving import RIGHT, ServiceServer, half_sent, job, post, serving


def ping(server: ServiceServer) -> int:
    connection = http.client.HTTPConnection(*server.address, timeout=60)
    try:
        connection.request("GET", "/v1/ping")
        return connection.getresponse().status
    finally:
        connection.close()


def test_with_a_token_only_pings_are_free(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    token = "t0ken-of-the-test"
    with serving(sandbox, host="0.0.0.0", token=token) as server:
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        assert ping(server) == 200
        for header in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": token}):
            status, answer = post(server, **header)
            assert (status, answer["detail"]) == (401, "a token is required: send Authorization: Bearer TOKEN")
        with pytest.raises(UserError, match="a token is required") as caught:
            RemoteSandbox(url).run([Job(RIGHT, "add")])
        assert token not in str(caught.value)
        monkeypatch.setenv("MY_TOKEN", token)
        assert RemoteSandbox(url, token_env="MY_TOKEN").run([Job(RIGHT, "add")])[0].loaded


@pytest.mark.parametrize("host", [
    "example.org", "example.org:80", "127.0.0.1.example.org", "[::2]:80", "", "0.0.0.0", "[::1].example.org",
    "[::1]example.org:80", "localhost:80@example.org", "localhost:80:80", "[localhost]", "localhost/x", "localhost:",
    "[::1", "::1", "127.0.0.1:80.example.org", "user@localhost", "localhost ,example.org", "2130706433", "localhost.",
])  # fmt: skip
def test_without_a_token_a_page_cannot_rename_this_machine(sandbox: Sandbox, host: str) -> None:
    with serving(sandbox) as server:
        assert post(server, Host=host)[0] == 403
        for own in ("localhost", "LOCALHOST:1", "127.0.0.2:80", "[::1]:80"):
            assert post(server, Host=own)[0] == 200


def test_a_second_host_does_not_count_for_the_first(sandbox: Sandbox) -> None:
    with serving(sandbox) as server, socket.create_connection(server.address, timeout=60) as client:
        client.sendall(b"GET /problems HTTP/1.1\r\nHost: example.org\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert client.makefile("rb").readline().split()[1] == b"400"


def test_a_forwarded_address_is_not_believed(sandbox: Sandbox) -> None:
    with serving(sandbox) as server:
        assert post(server, **{"X-Forwarded-Host": "localhost", "Host": "example.org"})[0] == 403


def test_bodies_have_a_bound_together(sandbox: Sandbox) -> None:
    with serving(sandbox, bounds=ServiceBounds(max_held_bytes=1000)) as server:
        status, answer = post(server, body=job("#" * 2000))
        assert (status, answer["detail"][:10]) == (429, "the server")
        assert post(server)[0] == 200


def test_a_length_bounds_the_body(sandbox: Sandbox) -> None:
    with serving(sandbox) as server:
        status, answer = post(server, **{"Transfer-Encoding": "chunked", "Content-Length": "4"})
        assert (status, answer["detail"]) == (411, "Content-Length is required, Transfer-Encoding refused")


def test_a_body_that_is_too_large_is_refused_unread(sandbox: Sandbox) -> None:
    with serving(sandbox, bounds=ServiceBounds(max_body_bytes=1000)) as server:
        status, answer = post(server, body=job("#" * 2000))
        assert (status, "bytes" in answer["detail"]) == (413, True)


def test_a_body_without_a_length_is_refused(sandbox: Sandbox) -> None:
    with serving(sandbox) as server, socket.create_connection(server.address, timeout=10) as client:
        client.sendall(b"POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 411 ")


def test_what_a_web_page_can_post_unasked_is_refused(sandbox: Sandbox) -> None:
    with serving(sandbox) as server:
        assert post(server, **{"Content-Type": "text/plain"})[0] == 422
        assert post(server, **{"Content-Type": "application/json; charset=utf-8"})[0] == 200


def test_a_client_that_hangs_up_disturbs_nobody(sandbox: Sandbox, capfd: pytest.CaptureFixture[str]) -> None:
    with serving(sandbox) as server:
        with socket.create_connection(server.address, timeout=10) as client:
            client.sendall(half_sent())
        assert post(server)[0] == 200
    assert capfd.readouterr().err == ""
