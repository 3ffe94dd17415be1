"""The images of the Dockerfile: a user without privileges plays and serves, with a read-only root.

There is no registry to pull a base image from, so `.ci/image-base` makes one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from tests.support import ROOT
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200), pytest.mark.xdist_group("user images")]

CLOSED = {"read_only": True, "network_mode": "none", "cap_drop": ["ALL"], "security_opt": ["no-new-privileges"]}
"""How a careful user starts a container; without a network, since test engines have none."""

CONNECT = "import socket; socket.create_connection(('127.0.0.1', {port}))"

CLIENT = """
from codea1_agents.adapters.openenv_game import GameAction, GameClient
with GameClient("http://127.0.0.1:8000").sync() as game:
    first = game.reset(seed=1).observation
    ended = game.step(GameAction(text="nothing")).observation
print(first.agent, ended.rewards["coder"], ended.verdict)
"""

TOKEN = "token-of-these-tests"

JUDGE = f"""
import json
from urllib.request import Request, urlopen
body = {{"problem_ids": ["starter/count_carries"], "programs": ["nothing"]}}
headers = {{"Content-Type": "application/json", "Authorization": "Bearer {TOKEN}"}}
with urlopen(Request("http://127.0.0.1:8080/judge", json.dumps(body).encode(), headers)) as answer:
    (item,) = json.load(answer)["items"]
print(item["coder"], item["tester"])
"""


@pytest.fixture(scope="module")
def client(engine: Any) -> Iterator[Any]:
    """The engine's interface for people."""
    docker = pytest.importorskip("docker", reason="the extra docker is not installed")
    with closing(docker.from_env(timeout=900)) as found:
        yield found


@pytest.fixture(scope="module")
def base(client: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An image with this Python's version, and all wheels."""
    file = tmp_path_factory.mktemp("base") / "base.tar"
    command, environment = [ROOT / ".ci" / "image-base", file], {**os.environ, "PYTHON": sys.executable}
    made = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(made.stderr.strip().rpartition("\n")[2])
    name = "codea1-test-base"
    client.api.import_image(str(file), repository=name)
    file.unlink()
    yield name
    client.images.remove(name, force=True)


@pytest.fixture(scope="module")
def image(client: Any, base: str) -> Iterator[Callable[[str | None], str]]:
    """Build a target of the Dockerfile, or the last one; return the image's id."""
    built = set()

    def build(target: str | None) -> str:
        found, _ = client.images.build(
            path=str(ROOT), target=target, buildargs={"BASE": base}, network_mode="none", rm=True, forcerm=True
        )
        built.add(found.id)
        return str(found.id)

    yield build
    for each in built:
        client.images.remove(each, force=True)


@pytest.fixture(scope="module")
def codea1(client: Any, image: Callable[[str | None], str]) -> Callable[..., Any]:
    built = image(None)

    def run(*arguments: str, **options: Any) -> Any:
        return json.loads(client.containers.run(built, [*arguments, "--json"], remove=True, **CLOSED | options))

    return run


def test_games_are_played_with_a_root_that_is_read_only(codea1) -> None:
    played = codea1("play", "-p", "starter", "--coder", "mutant", "--tester", "fuzz", "-n", "3")
    assert (played["n_episodes"], played["n_masked_rounds"]) == (3, 0)


@pytest.mark.parametrize(
    ("options", "guarantees"),
    [
        ({}, {"best effort", "isolated"}),  # docs/docker.md: landlock, where the kernel has it
        ({"security_opt": ["no-new-privileges", "seccomp=unconfined"]}, {"isolated"}),
    ],
)
def test_the_sandbox_works_in_a_container_without_privileges(codea1, options, guarantees: set[str]) -> None:
    found = codea1("sandbox", "check", **options)
    assert all(each["ok"] for each in found["outcomes"])
    assert found["sandbox"]["guarantee"] in guarantees


@contextmanager
def running(client: Any, image: str, *command: str, **options: Any) -> Iterator[Any]:
    container = client.containers.run(image, list(command) or None, detach=True, **CLOSED | options)
    try:
        yield container
    finally:
        container.remove(force=True)


def says(container: Any, code: str) -> tuple[int, str]:
    """Run Python in a container; return its exit status and what it wrote."""
    done = container.exec_run(["python", "-c", code])
    return done.exit_code, done.output.decode()


def test_openenvs_server_plays(client: Any, image) -> None:
    with running(client, image("openenv"), environment={"CODEA1_SERVE_TOKEN": TOKEN}) as server:
        assert says(server, "import os; print(os.getuid() > 0)") == (0, "True\n")
        assert wait_until(lambda: says(server, CONNECT.format(port=8000))[0] == 0, 60), server.logs().decode()
        assert says(server, CLIENT) == (0, "coder 0.0 no_code\n")


def test_the_judge_is_served(client: Any, image) -> None:
    command = ("serve", "--host", "0.0.0.0", "-p", "starter")
    with running(client, image(None), *command, environment={"CODEA1_SERVE_TOKEN": TOKEN}) as server:
        assert wait_until(lambda: says(server, CONNECT.format(port=8080))[0] == 0, 60), server.logs().decode()
        assert says(server, JUDGE) == (0, "0.0 None\n")
