"""`.ci/docker-engine run`: the command's own status, and no engine left, however it ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.waiting import wait_until

SCRIPT = ROOT / ".ci" / "docker-engine"
NOWHERE = {"DOCKER_HOST": "unix:///nowhere/socket"}

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="engines run on Linux")
with_engine = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("dockerd"), reason="needs an engine of its own")


def test_where_none_can_be_installed_the_command_runs_without_and_the_reason_is_said(tmp_path: Path) -> None:
    for tool in ("bash", "cat", "cut", "sed", "timeout"):
        (tmp_path / tool).symlink_to(str(shutil.which(tool)))
    for fake, does in (("id", "echo 0"), ("apt-get", "exit 100")):
        (tmp_path / fake).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / fake).chmod(0o755)
    command = ["/bin/bash", SCRIPT, "run", "bash", "-c", "echo $DOCKER_HOST; exit 7"]
    done = subprocess.run(command, env={**NOWHERE, "PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, "unix:///nowhere/socket\n")
    assert done.stderr == "docker-engine: apt-get cannot install docker.io\n"


def test_an_engine_that_is_reached_over_the_network_is_the_users_own() -> None:
    command = [SCRIPT, "run", "bash", "-c", "echo $DOCKER_HOST"]
    environment = {**os.environ, "DOCKER_HOST": "tcp://192.0.2.1:1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "tcp://192.0.2.1:1\n"


def started() -> tuple[subprocess.Popen[str], Path]:
    """A command beside an engine of its own, which lasts until it is told to end, and that engine's folder."""
    command = [SCRIPT, "run", "bash", "-c", "echo $DOCKER_HOST; read -r -t 60"]
    pipe, environment = subprocess.PIPE, {**os.environ, **NOWHERE}
    process = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    if address == NOWHERE["DOCKER_HOST"]:
        _, said = process.communicate("")
        pytest.skip(
            f"no container engine answers here, and none can be started: {said.rpartition('docker-engine: ')[2]}"
        )
    return process, Path(address.removeprefix("unix://")).parent


@pytest.mark.engine
@with_engine
def test_a_command_that_is_asked_to_end_ends_at_once_and_its_engine_too() -> None:
    process, folder = started()
    with process:
        pid = int((folder / "pid").read_text())
        process.terminate()
        assert process.wait(20) == 128 + signal.SIGTERM
    assert not folder.exists()
    assert wait_until(lambda: has_ended(pid))


@pytest.mark.engine
@with_engine
def test_the_engine_of_a_killed_run_is_ended_by_the_next_and_that_of_a_running_one_is_not() -> None:
    killed, folder = started()
    running, other = started()
    with killed, running:
        pid = int((folder / "pid").read_text())
        killed.kill()
        killed.wait()
        subprocess.run([SCRIPT, "sweep"], check=True)
        assert not folder.exists()
        assert wait_until(lambda: has_ended(pid))
        assert (other / "socket").exists()
        running.terminate()
    assert not other.exists()


def has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
