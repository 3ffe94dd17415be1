from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from codea1_agents.checks import machine
from codea1_agents.checks.machine import Finding, examine
from codea1_env.errors import SandboxError, install_line
from codea1_env.sandbox import Guarantee


def subjects() -> dict[str, Finding]:
    return {each.subject: each for each in examine()}


def test_a_missing_extra_comes_with_its_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    there = machine._version
    monkeypatch.setattr(machine, "_version", lambda package: "" if package == "pyarrow" else there(package))
    found = subjects()
    assert {"Python", "packages", "extra vllm", "cores", "memory", "sandbox", "docker", "GPU"} <= found.keys()
    assert found["extra data"].remedy == install_line("codea1-env[data]")
    assert found["extra data"].detail == "pyarrow (missing)"
    assert found["packages"].ok
    assert found["packages"].remedy == ""
    assert "numpy" in found["packages"].detail


def test_the_sandbox_is_named_with_its_promise_and_may_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    detail = subjects()["sandbox"].detail
    assert detail.startswith("local: ")
    assert any(guarantee.value in detail for guarantee in Guarantee)

    def fails(sandbox: object) -> None:
        raise SandboxError("no worker starts")

    monkeypatch.setattr(machine, "promise_of", fails)
    assert not subjects()["sandbox"].ok
    assert subjects()["sandbox"].detail == "no worker starts"


def test_docker_is_asked_at_its_socket_unless_it_is_remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "docker.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    assert not subjects()["docker"].ok
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(path))
        server.listen()

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                connection.sendall(b"HTTP/1.0 200 OK\r\n\r\nOK")

        thread = threading.Thread(target=answer)
        thread.start()
        assert subjects()["docker"].ok
        thread.join()
    monkeypatch.setenv("DOCKER_HOST", "tcp://192.0.2.1:2375")
    assert "not checked" in subjects()["docker"].detail
