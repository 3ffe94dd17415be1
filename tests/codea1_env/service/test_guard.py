"""Senders and bodies are checked before a body is read."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from codea1_env.errors import UserError
from codea1_env.sandbox import Job, Sandbox
from codea1_env.sandbox.remote import RemoteSandbox
from codea1_env.service.bounds import ServiceBounds
from tests.support.serving import RIGHT, asked, half_sent, job, post, serving


def test_with_a_token_only_pings_are_free(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    token = "t0ken-of-the-test"
    with serving(sandbox, host="0.0.0.0", token=token) as server:
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        assert asked(server, "/v1/ping")[0] == 200
        assert post(server, path="/v1/ping")[0] == 401  # a body is held
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
            assert post(server, Host=own, Origin=f"http://{own}")[0] == 200
            assert post(server, Host=own, Origin=f"http://{host}")[0] == 403


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /problems HTTP/1.1\r\nHost: example.org\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"400"),
        (b"POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\r\n", b"411"),
    ],
)
def test_a_second_host_and_a_body_without_a_length_are_refused(sandbox: Sandbox, head: bytes, status: bytes) -> None:
    with serving(sandbox) as server, socket.create_connection(server.address, timeout=60) as client:
        client.sendall(head)
        assert client.makefile("rb").readline().split()[1] == status


FORWARDED = {"X-Forwarded-Host": "localhost", "Host": "example.org"}
CHUNKED = {"Transfer-Encoding": "chunked", "Content-Length": "4"}


@pytest.mark.parametrize(
    ("bounds", "body", "headers", "status", "said"),
    [
        ({}, job(), FORWARDED, 403, ""),
        ({}, job(), CHUNKED, 411, "Content-Length is required, Transfer-Encoding refused"),
        ({}, job(), {"Content-Type": "text/plain"}, 422, ""),  # which a web page can post unasked
        ({"max_held_bytes": 9000}, job("#" * 5000), {}, 413, "at most 4500 bytes of memory"),
        ({"max_body_bytes": 1000}, job("#" * 2000), {}, 413, "bytes"),
    ],
)
def test_a_body_is_not_read(sandbox: Sandbox, bounds: Any, body: Any, headers: Any, status: int, said: str) -> None:
    with serving(sandbox, bounds=ServiceBounds(**bounds)) as server:
        found, answer = post(server, body=body, **headers)
        assert (found, said in str(answer["detail"])) == (status, True)
        assert post(server, **{"Content-Type": "application/json; charset=utf-8"})[0] == 200


def test_a_client_that_hangs_up_disturbs_nobody(sandbox: Sandbox, capfd: pytest.CaptureFixture[str]) -> None:
    with serving(sandbox) as server:
        with socket.create_connection(server.address, timeout=10) as client:
            client.sendall(half_sent())
        assert post(server)[0] == 200
    assert capfd.readouterr().err == ""
