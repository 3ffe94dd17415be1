"""What is left behind is seen, whoever left it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from codea1_env.audit.surroundings import MARK, Surroundings
from codea1_env.sandbox import Job, Sandbox

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="looks in /proc"),
    pytest.mark.xdist_group("watches the machine"),
]


@pytest.fixture
def watched() -> Iterator[Surroundings]:
    with Surroundings(wait_s=0.3) as watched:
        yield watched


@contextmanager
def started(code: str = "print('ready', flush=True); input()") -> Iterator[int]:
    """Within it, a process runs that has said that it is ready."""
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
    finally:
        process.kill()
        process.communicate()


def test_a_process_that_still_runs_is_named_until_it_ends(watched: Surroundings) -> None:
    with started() as pid:
        (change,) = watched.changes()
        assert change.startswith(f"process {pid} ")
    assert watched.changes() == []


def test_a_process_that_is_about_to_end_is_waited_for() -> None:
    with Surroundings(wait_s=30.0) as watched:
        process = subprocess.Popen(["sleep", "0.2"])
        assert watched.changes() == []
    assert process.wait() == 0


def test_the_interpreters_of_the_local_pool_are_not_left_behind(watched: Surroundings, sandbox: Sandbox) -> None:
    sandbox.close()
    watched.mark()
    sandbox.run([Job("def f(): pass", "f")])
    assert watched.changes() == []


def test_a_process_in_the_place_of_another_is_not_left_behind(watched: Surroundings) -> None:
    with started():
        watched.mark()
    with started():
        assert watched.changes() == []
        assert not watched.mark()


def test_a_listening_socket_is_named(watched: Surroundings) -> None:
    with started():
        watched.mark()
    with started("import socket; s = socket.create_server(('127.0.0.1', 0)); print(1, flush=True); input()"):
        # others may begin to listen at the same time
        assert any(change.startswith("something listens at 0100007F port ") for change in watched.changes())


def test_a_file_that_was_left_is_named_and_removed(watched: Surroundings) -> None:
    path = Path(tempfile.mkdtemp(prefix=MARK))
    (path / "inner").touch()
    assert f"{path} was left" in watched.changes()
    assert not path.exists()
    assert f"{path} was left" not in watched.changes()


def test_a_file_that_was_there_before_is_left_alone(watched: Surroundings) -> None:
    with tempfile.NamedTemporaryFile(prefix=MARK) as file:
        watched.mark()
        assert watched.changes() == []
        assert Path(file.name).exists()


@pytest.mark.parametrize("harm", ["write", "add", "remove"])
def test_harm_to_the_canary_is_seen(watched: Surroundings, harm: str) -> None:
    (folder,) = (path for path in Path(tempfile.gettempdir()).glob("codea1-canary-*") if watched.secret in read(path))
    secret = folder / "secret"
    {"write": lambda: secret.write_text("x"), "add": (folder / "more").touch, "remove": secret.unlink}[harm]()
    assert watched.changes() == [f"{folder} was changed"]


def read(folder: Path) -> str:
    try:
        return (folder / "secret").read_text()
    except OSError:  # another test's, which has just ended
        return ""


def test_the_canary_is_gone_in_the_end() -> None:
    with Surroundings() as watched:
        secret = watched.secret
    assert not any(secret in read(path) for path in Path(tempfile.gettempdir()).glob("codea1-canary-*"))
