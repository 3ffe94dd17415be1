"""Trusted handle on one zygote: starting it, asking it to fork, hearing what ended."""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import select
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, Protocol

from codea1_env.errors import SandboxError
from codea1_env.sandbox.wire import Notice, Op, Request

_BOOTSTRAP = Path(__file__).parents[1] / "inside" / "bootstrap.py"
_ROOT = Path(__file__).parents[3]
# macOS has no SOCK_SEQPACKET for local sockets.
_CONTROL_KIND = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_DGRAM
_LISTEN_TIMEOUT_S = 5.0
_PIPE_BYTES = 1 << 18
_ANSWER_TIMEOUT_S = 20.0
# Without site packages, user's or working folder. Bytecode of what only zygotes import is kept, unless that is not
# wanted: to compile it anew leaves holes in the memory of each, which their children pay for.
_FLAGS = ("-S", "-s", "-P", *(("-B",) if sys.dont_write_bytecode else ()))
_CLEAN_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/tmp",
    "TZ": "UTC",
    "PYTHONHASHSEED": "0",  # the order of sets must not depend on the process
    "OMP_NUM_THREADS": "1",  # a zygote with threads cannot fork safely; read when numpy is imported
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "1",  # each arena takes 64 MB of address space
    "LD_BIND_NOW": "1",  # else each job looks the same symbols up again; no program sees this
}


class Ends(NamedTuple):
    """Our ends of a channel: descriptors that never block."""

    incoming: int
    outgoing: int


class WorkerDied(SandboxError):
    """A zygote has ended, does not start or does not listen; its jobs must be run again."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What distinguishes one kind of zygote from another."""

    packages: Mapping[str, str] = field(default_factory=dict)
    """Site packages that programs may import: name to the folder that holds them."""
    preload: Sequence[str] = ()
    """Those of them, and of the rarer modules of the standard library, that are imported before any fork."""


class Launched(Protocol):
    """What was started: a zygote or what holds it. `subprocess.Popen` has all of this."""

    returncode: Any
    """None until its end is known."""

    @property
    def pid(self) -> int:
        """Process id as we see it, or -1."""

    def poll(self) -> int | None:
        """Return its exit status if it has ended."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, at most `timeout` seconds (`subprocess.TimeoutExpired`)."""

    def kill(self) -> None:
        """End it without asking."""


Launch = Callable[[dict[str, Any], socket.socket], Launched]
"""(options of a zygote, the far end of its control socket) -> what was started; raises OSError or ValueError."""


def launch_here(options: dict[str, Any], control: socket.socket) -> subprocess.Popen[bytes]:
    """Start a zygote as a process of this machine."""
    options = {**options, "root": str(_ROOT), "control": control.fileno(), "parent": os.getpid()}
    return subprocess.Popen(
        [sys.executable, *_FLAGS, str(_BOOTSTRAP), json.dumps(options)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(control.fileno(),),
        cwd="/",
        env=clean_environment(),
        start_new_session=True,  # an interrupt from the terminal is for us, not for it
    )


class Worker:
    """One zygote. Not thread-safe: only the scheduler's thread uses it.

    Must be made in a thread that outlives it: the kernel ends a zygote with the thread that started it.
    """

    def __init__(self, setup: Setup, tier: str, launch: Launch = launch_here) -> None:
        self.setup = setup
        self.tier = tier
        self.guarantee = ""
        self.refusal = ""
        """Why it cannot have its tier."""
        self.jobs_can_kill_themselves = True
        """If not, a process that dies of SIGKILL was killed by us or by the machine."""
        self.n_forks = 0
        """How many processes it was asked for."""
        self.ready = False
        self.deadline = math.inf
        """When it is given up if it is not ready (monotonic clock)."""
        self._asked_at = math.inf
        self.control, far = socket.socketpair(socket.AF_UNIX, _CONTROL_KIND)
        try:
            self._process = launch(
                {"tier": tier, "packages": dict(setup.packages), "preload": list(setup.preload)}, far
            )
        except (OSError, ValueError) as error:
            self.control.close()
            raise WorkerDied(f"cannot start {sys.executable!r}: {error}") from error
        finally:
            far.close()
        self.control.setblocking(False)

    @property
    def pid(self) -> int:
        """Process id of what was started (the zygote or its launcher)."""
        return self._process.pid

    def fork(self, number: int, cpu_s: int, memory_mb: int) -> Ends:
        """Ask for a process; return our ends of its channel.

        Raises:
            WorkerDied: the zygote does not listen.
            OSError: we may have no more files open.
        """
        its_incoming, outgoing = os.pipe()
        try:
            incoming, its_outgoing = os.pipe()
        except OSError:
            os.close(its_incoming)
            os.close(outgoing)
            raise
        self.n_forks += 1
        request = Request(Op.FORK, number, cpu_s, memory_mb).pack()
        try:
            self._insist(lambda: socket.send_fds(self.control, [request], [its_outgoing, its_incoming]))
        except OSError as error:
            os.close(incoming)
            os.close(outgoing)
            raise WorkerDied(f"a zygote does not listen: {error}") from error
        finally:
            os.close(its_incoming)
            os.close(its_outgoing)
        os.set_blocking(incoming, False)
        os.set_blocking(outgoing, False)
        _enlarge(incoming)
        return Ends(incoming, outgoing)

    def tell(self, op: bytes, number: int) -> None:
        """Send a message about one process. A dead zygote is noticed by `notices`."""
        request = Request(op, number).pack()
        with contextlib.suppress(OSError):
            self._insist(lambda: self.control.send(request))

    def _insist(self, send: Callable[[], object]) -> None:
        try:
            send()
        except BlockingIOError:
            listening = select.poll()  # `select.select` knows no descriptor beyond 1023
            listening.register(self.control, select.POLLOUT)
            listening.poll(1000 * _LISTEN_TIMEOUT_S)
            send()

    def ask_for_cpu(self, number: int) -> None:
        """Ask for the processor time of a process; the answer is a notice."""
        self._asked_at = min(self._asked_at, monotonic())
        self.tell(Op.CPU, number)

    @property
    def is_overdue(self) -> bool:
        """Whether it does not start, or has not answered for so long that it must hang."""
        now = monotonic()
        return now - self._asked_at > _ANSWER_TIMEOUT_S if self.ready else now > self.deadline

    def notices(self) -> list[Notice]:
        """Return what the zygote has said since the last call.

        Raises:
            WorkerDied: it has ended.
        """
        self._asked_at = math.inf
        heard: list[Notice] = []
        while True:
            try:
                data = self.control.recv(65_536)
            except BlockingIOError:
                return heard
            except OSError as error:
                raise WorkerDied(f"a zygote is gone: {error}") from error
            if not data:
                raise WorkerDied(f"a zygote ended with status {self._process.poll()}")
            if data[:1] == Op.READY and not self.ready:
                said = json.loads(data[1:])
                self.guarantee, self.ready = said["guarantee"], True
                self.jobs_can_kill_themselves = said["suicide"]
            elif data[:1] == Op.REFUSED and not self.ready:
                self.refusal = data[1:].decode("utf-8", "replace")
            else:
                heard.append(Notice.unpack(data))

    def kill(self) -> None:
        """End it without asking, which also ends one that hangs."""
        self._process.kill()
        self.close()

    def close(self) -> None:
        """End the zygote and everything that it forked; idempotent."""
        self.control.close()  # the zygote kills its children when it sees this
        if self._process.returncode is not None:
            return
        try:
            self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def forget(self) -> None:
        """Let go of a zygote that belongs to another process (after a fork of ours)."""
        self.control.close()
        self._process.returncode = 0  # not our child: nothing to wait for, nothing to warn of


def _enlarge(pipe: int) -> None:
    """Make room for all that most jobs say, so that they need not wait until someone listens."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # beyond what this user may have: they wait
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def clean_environment() -> dict[str, str]:
    """Return the environment variables of a zygote; programs see them."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "PYTHONHOME") if name in os.environ}
    return {**_CLEAN_ENVIRONMENT, **kept}
