"""An engine to test against, and looking at what this project has on it.

What an engine runs for others is never touched: tests look only at containers with this project's labels.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from codea1_env.sandbox.docker.engine import LABEL, EngineGone, connected
from codea1_env.sandbox.docker.image import REPOSITORY
from codea1_env.sandbox.docker.sandbox import DockerSandbox
from codea1_env.sandbox.local import LocalSandbox
from tests.support import ROOT

ENGINE = ROOT / ".ci" / "docker-engine"


class Engine:
    """What these tests do with an engine beside using it as a sandbox."""

    def start(self, folder: Path) -> str:
        try:
            return engine_command("start", folder, main_process())
        except NoEngine as reason:
            pytest.skip(str(reason))

    def stop(self, folder: Path) -> None:
        engine_command("stop", folder)

    def new_folder(self) -> Path:
        return Path(tempfile.mkdtemp(prefix="engine-", dir="/tmp"))  # a local socket's path must be short

    def containers(self) -> list[dict[str, Any]]:
        """This project's containers; tests of containers run one after the other."""
        with connected() as client:
            return list(client.containers(all=True, filters={"label": f"{LABEL}=container"}))

    def ids(self) -> set[str]:
        return {container["Id"] for container in self.containers()}

    def main_pid(self, container: str) -> int:
        """The process, as this machine sees it, that started the zygotes of a container."""
        with connected() as client:
            return int(client.inspect_container(container)["State"]["Pid"])

    def images(self, client: Any) -> list[str]:
        return [image["Id"] for image in client.images(REPOSITORY)]


def engine_command(*arguments: object) -> str:
    done = subprocess.run([ENGINE, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        reason = done.stderr.strip().rpartition("\n")[2].removeprefix("docker-engine: ")
        raise NoEngine(f"no container engine answers here, and none can be started: {reason[:200]}")
    return done.stdout.strip()


class NoEngine(Exception):
    """It cannot be started."""


def main_process() -> int:
    """The process that ends last of all that run these tests."""
    return os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """An engine that `DOCKER_HOST` names: what answers already, else one for all processes of this test run."""
    try:
        with connected():
            pass
    except EngineGone:
        shared = tmp_path_factory.getbasetemp()
        shared = shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared
        with engine_of_ours(shared) as address, pytest.MonkeyPatch.context() as patch:
            patch.setenv("DOCKER_HOST", address)
            yield Engine()
    else:
        yield Engine()


@contextmanager
def engine_of_ours(shared: Path) -> Iterator[str]:
    """The first process that needs it starts it, the last one that has it ends it; without one, all skip alike."""
    with counting(shared, 1) as (n_users, place):
        if n_users == 1 and not place.exists():
            place.write_text(json.dumps(new_engine()))
        folder, address, obstacle = json.loads(place.read_text())
    try:
        if obstacle:
            pytest.skip(obstacle)
        yield address
    finally:
        with counting(shared, -1) as (n_users, place):
            if n_users == 0 and not obstacle:
                engine_command("stop", folder)
                place.unlink()


def new_engine() -> tuple[str, str, str]:
    """Folder and address of a new engine, and why there is none, if so."""
    folder = Engine().new_folder()
    try:
        return str(folder), engine_command("start", folder, main_process()), ""
    except NoEngine as reason:
        engine_command("stop", folder)
        return "", "", str(reason)


@contextmanager
def counting(shared: Path, change: int) -> Iterator[tuple[int, Path]]:
    with (shared / "engine.users").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        n_users = int(file.read() or 0) + change
        file.truncate(0)
        file.write(str(n_users))
        file.flush()
        yield n_users, shared / "engine.place"


@pytest.fixture(scope="session")
def docker(engine: Engine) -> Iterator[DockerSandbox]:
    """A sandbox for whoever does not need one of their own."""
    with DockerSandbox(2) as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def local() -> Iterator[LocalSandbox]:
    with LocalSandbox(2) as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def started() -> Callable[[str], subprocess.Popen[str]]:

    def start(code: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", textwrap.dedent(code)]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    return start
