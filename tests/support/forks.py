"""Python processes as forks of one that has Ray, torch and transformers imported, which takes five seconds each time.

Ray's workers: within `forked_workers`, Ray runs this file in place of its own `setup_worker.py`. The first worker of a
raylet starts the server, which ends with the raylet. Commands of tests: `Fork` uses the same server. Arguments,
environment, folder and standard streams are those of a process that is started; only the imports are done.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partialmethod
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

MODULES = (
    "codea1_agents.train.grpo.algorithm",
    "codea1_agents.train.grpo.learner",
    "peft",
    "ray.train.torch",
    "ray.tune",
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.tokenization_auto",
    "transformers.models.qwen2.modeling_qwen2",
)
LONGEST = 200_000
"""Bytes of a message: arguments and environment."""


def forked_workers() -> AbstractContextManager[object]:
    """Within it, `ray.init` starts a Ray whose workers are forks."""
    if sys.platform != "linux":
        return nullcontext()
    from ray._private.parameter import RayParams

    return patch.object(RayParams, "__init__", partialmethod(RayParams.__init__, setup_worker_path=__file__))


class Fork:
    """`python -c` as a fork of the server of this process's Ray; what it writes to stdout and stderr is `output`."""

    def __init__(self, code: str, *arguments: str, folder: Path, environment: Mapping[str, str]) -> None:
        import pytest
        import ray

        if sys.platform != "linux":
            pytest.skip("forks with Ray imported need Linux")
        from tests.support.waiting import wait_until

        server = path_of(ray._private.worker._global_node.raylet_socket_name)
        assert wait_until(server.exists, 60)
        read, write = os.pipe()
        self.output = os.fdopen(read)
        self._connection = connection_to(server)
        place = {"environment": {**environment}, "folder": str(folder)}
        request(self._connection, [0, write, write], ["-c", code, *arguments], **place)
        os.close(write)
        self.pid = int(self._connection.recv(LONGEST))
        self._status: int | None = None

    def wait(self, seconds: float = 120.0) -> int:
        """Return its exit status, that of a signal as a negative number."""
        if self._status is None:
            self._connection.settimeout(seconds)
            self._status = int(self._connection.recv(LONGEST))
            self._connection.close()
        return self._status

    def end(self) -> tuple[int, str]:
        """Wait for its end; return its exit status and the rest of its output."""
        rest = self.output.read()
        self.output.close()
        return self.wait(), rest

    def kill(self) -> None:
        """End it, unless it has ended."""
        if self._status is None:
            if not select.select([self._connection], [], [], 0)[0]:
                os.kill(self.pid, signal.SIGKILL)
            self.wait()
        self.output.close()


def path_of(raylet: str) -> Path:
    return Path(f"{raylet}.forks")


def connection_to(server: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(str(server))
    return connection


def request(connection: socket.socket, streams: Sequence[int], arguments: Sequence[str], **others: Any) -> None:
    """Ask for a process with these arguments, an `environment` and a `folder`."""
    command = {"arguments": [*arguments], **others}
    socket.send_fds(connection, [json.dumps(command).encode()], streams)


def start_worker(arguments: list[str]) -> None:
    """Have a worker of Ray forked, and live as long as it does."""
    (raylet,) = [each.partition("=")[2] for each in arguments if each.startswith("--raylet-name=")]
    server = path_of(raylet)
    with server.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not server.exists():
            command = [sys.executable, __file__, "serve", str(server), str(os.getppid())]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
            assert process.stdout is not None
            if not process.stdout.readline():  # it has written why to the worker's log; a worker of Ray's own must do
                from ray._private.workers import setup_worker

                os.execv(sys.executable, [sys.executable, setup_worker.__file__, *arguments])
    connection = connection_to(server)
    request(connection, [0, 1, 2], arguments, environment={**os.environ}, folder=str(Path.cwd()))
    connection.recv(LONGEST)
    connection.recv(LONGEST)


def serve(path: str, raylet: int) -> None:
    """Fork processes until the raylet ends. It returns in a fork, too, whose work is done."""
    del sys.path[0]  # the folder of this file
    os.environ["OMP_NUM_THREADS"] = "1"  # Ray sets it for a worker, and torch reads it when it is imported
    import_without_drawing()
    if not forks_draw_differently():
        raise RuntimeError("an import has used Ray's native generator: its forks would take the same ids for objects")
    gc.freeze()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(f"{path}.new")
    listener.listen(64)
    os.rename(f"{path}.new", path)  # who sees it can connect
    end, forks = os.pidfd_open(raylet), {}
    print("ready", flush=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    while end not in (ready := select.select([listener, end, *forks], [], [])[0]):
        for each in ready:
            if each is not listener:
                report(each, forks.pop(each))
                continue
            connection, _ = listener.accept()
            message, streams, *_ = socket.recv_fds(connection, LONGEST, 3)
            pid = os.fork()
            if pid == 0:
                for each_socket in (listener, connection, *forks.values()):
                    each_socket.close()
                for process in (end, *forks):
                    os.close(process)
                become(json.loads(message), streams)
                return
            tell(connection, pid)
            forks[os.pidfd_open(pid)] = connection
            for stream in streams:
                os.close(stream)


def import_without_drawing() -> None:
    """Import the modules without using Ray's native generator of random ids.

    Its state would be the same in all forks. Two workers that start together would then give the same "random" id to
    two objects; one of them dies in Ray's own check, and `ray.init` waits for it for ever. Each class with
    `@ray.remote` draws an id when its module is imported, so those ids come from the system during the imports.
    """
    import ray.actor
    from ray._raylet import ActorClassID

    class FromTheSystem:
        @staticmethod
        def from_random() -> ActorClassID:
            return ActorClassID(os.urandom(ActorClassID.size()))

    with patch.object(ray.actor, "ActorClassID", FromTheSystem):
        for module in MODULES:
            if find_spec(module.partition(".")[0]):
                importlib.import_module(module)


def forks_draw_differently() -> bool:
    """Whether two forks of this process draw different ids from Ray's native generator, which stays unused here."""
    from ray._raylet import ObjectID

    read, write = os.pipe()
    for _ in range(2):
        if (pid := os.fork()) == 0:
            os.write(write, ObjectID.from_random().binary())
            os._exit(0)
        os.waitpid(pid, 0)
    os.close(write)
    size = ObjectID.size()
    with os.fdopen(read, "rb") as stream:
        drawn = stream.read()
    return len(drawn) == 2 * size and drawn[:size] != drawn[size:]


def report(fork: int, connection: socket.socket) -> None:
    """Send the exit status of a fork that has ended."""
    status = os.waitid(os.P_PIDFD, fork, os.WEXITED)
    assert status is not None
    number = status.si_status if status.si_code == os.CLD_EXITED else -status.si_status
    os.close(fork)
    tell(connection, number)
    connection.close()


def tell(connection: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):  # nobody waits any more
        connection.send(str(number).encode())


def become(command: dict[str, Any], streams: list[int]) -> None:
    """Be the process that is wanted."""
    import numpy

    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.setpgrp()  # Ray ends the whole group of a worker that has died
    numpy.random.seed()
    sys.stdout.reconfigure(write_through=True)
    os.environ.clear()
    os.environ.update(command["environment"])
    os.chdir(command["folder"])
    if command["arguments"][0] == "-c":
        _, code, *arguments = command["arguments"]
        run_command(code, arguments)
    else:
        run_worker(command["arguments"])


def run_command(code: str, arguments: list[str]) -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # Ray's processes block SIGINT
    signal.signal(signal.SIGINT, signal.default_int_handler)
    places = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = ["", *(place for place in places if place not in sys.path)]
    sys.argv = ["-c", *arguments]
    exec(compile(code, "<string>", "exec"), vars(sys.modules["__main__"]))


def run_worker(arguments: list[str]) -> None:
    """Do what Ray's `setup_worker.py` and the worker's file do."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--serialized-runtime-env-context", default="{}")
    parser.add_argument("--language")
    known, sys.argv = parser.parse_known_args(arguments)
    os.environ.update(json.loads(known.serialized_runtime_env_context).get("env_vars", {}))
    sys.path.insert(0, str(Path(sys.argv[0]).parent))
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2], int(sys.argv[3]))
    else:
        start_worker(sys.argv[1:])
