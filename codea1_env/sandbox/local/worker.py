"""Trusted handle on one zygote: starts it, sends it requests to fork, reads its notices of processes that ended."""

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
_SEND_TIMEOUT_S = 5.0
_PIPE_BYTES = 1 << 18
# Without site packages, the user's included, and without the working folder. The bytecode of modules that only zygotes
# import is cached unless Python's settings forbid it: compiling would leave free gaps in the zygote's memory, and each
# child would pay for these with page copies.
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
    "LD_BIND_NOW": "1",  # else each job resolves the same symbols again; programs do not see this variable
}


class Ends(NamedTuple):
    """Our ends of a channel: descriptors that never block."""

    incoming: int
    outgoing: int


class WorkerDied(SandboxError):
    """A zygote has ended, does not start or does not read its socket; its jobs must be run again."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What distinguishes one kind of zygote from another."""

    packages: Mapping[str, str] = field(default_factory=dict)
    """Site packages that programs may import: name to the folder that contains the package."""
    preload: Sequence[str] = ()
    """Site packages and rarer modules of the standard library that the zygote imports before it forks."""


@dataclass(frozen=True, slots=True)
class Upkeep:
    """When a zygote is replaced."""

    max_forks: int = 50_000
    """The number of its processes, in case its state has grown."""
    answer_timeout_s: float = 20.0
    """How long it may leave a request without an answer."""


USUAL_UPKEEP = Upkeep()


class Launched(Protocol):
    """A started process: a zygote or its launcher. `subprocess.Popen` implements this."""

    returncode: Any
    """None until its end is known."""

    @property
    def pid(self) -> int:
        """Process id in this process's pid namespace, or -1."""

    def poll(self) -> int | None:
        """Return its exit status if it has ended."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, at most `timeout` seconds (`subprocess.TimeoutExpired`)."""

    def kill(self) -> None:
        """Kill it."""


Launch = Callable[[dict[str, Any], socket.socket], Launched]
"""(options of a zygote, its end of the control socket) -> the started process; raises OSError or ValueError."""


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
        start_new_session=True,  # an interrupt from the terminal must reach only this process
    )


class Worker:
    """One zygote. Not thread-safe: only the scheduler's thread uses it.

    The thread that constructs it must outlive it: the kernel kills a zygote when the thread that started it ends.
    """

    def __init__(self, setup: Setup, tier: str, launch: Launch = launch_here, upkeep: Upkeep = USUAL_UPKEEP) -> None:
        self.setup = setup
        self.tier = tier
        self.guarantee = ""
        self.refusal = ""
        """Why its tier is not available."""
        self.jobs_can_kill_themselves = True
        """If False, only this process or the system can have killed a process that dies of SIGKILL."""
        self.n_forks = 0
        """How many processes were requested."""
        self.ready = False
        self.deadline = math.inf
        """When it counts as failed if it is not ready (monotonic clock)."""
        self._upkeep = upkeep
        self._cpu_requested_at = math.inf
        self.control, theirs = socket.socketpair(socket.AF_UNIX, _CONTROL_KIND)
        try:
            self._process = launch(
                {"tier": tier, "packages": dict(setup.packages), "preload": list(setup.preload)}, theirs
            )
        except (OSError, ValueError) as error:
            self.control.close()
            raise WorkerDied(f"cannot start {sys.executable!r}: {error}") from error
        finally:
            theirs.close()
        self.control.setblocking(False)

    @property
    def pid(self) -> int:
        """Process id of the started process (the zygote or its launcher)."""
        return self._process.pid

    def fork(self, number: int, cpu_s: int, memory_mb: int) -> Ends:
        """Request a process; return our ends of its channel.

        Raises:
            WorkerDied: the zygote does not read its control socket.
            OSError: this process has too many open files.
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
            self._send_when_writable(lambda: socket.send_fds(self.control, [request], [its_outgoing, its_incoming]))
        except OSError as error:
            os.close(incoming)
            os.close(outgoing)
            raise WorkerDied(f"a zygote does not read its control socket: {error}") from error
        finally:
            os.close(its_incoming)
            os.close(its_outgoing)
        os.set_blocking(incoming, False)
        os.set_blocking(outgoing, False)
        _enlarge(incoming)
        return Ends(incoming, outgoing)

    def send_request(self, op: bytes, number: int) -> None:
        """Send a request about one process. If the zygote is dead, `notices` raises."""
        request = Request(op, number).pack()
        with contextlib.suppress(OSError):
            self._send_when_writable(lambda: self.control.send(request))

    def _send_when_writable(self, send: Callable[[], object]) -> None:
        try:
            send()
        except BlockingIOError:
            poll = select.poll()  # `select.select` accepts no descriptor beyond 1023
            poll.register(self.control, select.POLLOUT)
            poll.poll(1000 * _SEND_TIMEOUT_S)
            send()

    def request_cpu_time(self, number: int) -> None:
        """Request the processor time of a process; the zygote replies with a notice."""
        self._cpu_requested_at = min(self._cpu_requested_at, monotonic())
        self.send_request(Op.CPU, number)

    @property
    def is_worn_out(self) -> bool:
        """Whether it has forked `max_forks` processes."""
        return self.n_forks >= self._upkeep.max_forks

    @property
    def is_overdue(self) -> bool:
        """Whether it has not started in time, or has not answered for so long that it hangs."""
        now = monotonic()
        return now - self._cpu_requested_at > self._upkeep.answer_timeout_s if self.ready else now > self.deadline

    def notices(self) -> list[Notice]:
        """Return the notices that the zygote has sent since the last call.

        Raises:
            WorkerDied: it has ended.
        """
        self._cpu_requested_at = math.inf
        received: list[Notice] = []
        while True:
            try:
                data = self.control.recv(65_536)
            except BlockingIOError:
                return received
            except OSError as error:
                raise WorkerDied(f"the control socket of a zygote is broken: {error}") from error
            if not data:
                raise WorkerDied(f"a zygote ended with status {self._process.poll()}")
            if data[:1] == Op.READY and not self.ready:
                fields = json.loads(data[1:])
                self.guarantee, self.ready = fields["guarantee"], True
                self.jobs_can_kill_themselves = fields["can_kill_itself"]
            elif data[:1] == Op.REFUSED and not self.ready:
                self.refusal = data[1:].decode("utf-8", "replace")
            else:
                received.append(Notice.unpack(data))

    def kill(self) -> None:
        """Kill the zygote and everything that it forked, even if it hangs."""
        self._process.kill()
        self.close()

    def close(self) -> None:
        """End the zygote and everything that it forked; idempotent."""
        self.control.close()  # the zygote then kills its children and ends
        if self._process.returncode is not None:
            return
        try:
            self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def forget(self) -> None:
        """Close the copy of the control socket in a forked process; the zygote belongs to its parent."""
        self.control.close()
        self._process.returncode = 0  # not our child: Popen must neither wait for it nor warn


def _enlarge(pipe: int) -> None:
    """Enlarge a pipe's buffer, so that most jobs can write all their frames before the scheduler reads any."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # above this user's limit: jobs wait until the scheduler reads
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def clean_environment() -> dict[str, str]:
    """Return the environment variables of a zygote; programs see them."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "PYTHONHOME") if name in os.environ}
    return {**_CLEAN_ENVIRONMENT, **kept}
