"""The zygotes of one sandbox, as workers: trusted code forks processes of them, and reads which have ended.

A worker is the handle on one of them. The pool starts them when they are needed, one per core and kind, in the
strongest tier available.
"""

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
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    process = subprocess.Popen(
        [sys.executable, *_FLAGS, str(_BOOTSTRAP)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(control.fileno(),),
        cwd="/",
        env=clean_environment(),
        start_new_session=True,  # an interrupt from the terminal must reach only this process
    )
    assert process.stdin is not None
    with contextlib.suppress(OSError), process.stdin:  # one that has ended is seen as that
        process.stdin.write(json.dumps(options).encode() + b"\n")
    return process


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
        if sys.platform == "linux":  # most jobs can write all their frames before the scheduler reads any
            with contextlib.suppress(OSError):  # above this user's limit: jobs wait until the scheduler reads
                fcntl.fcntl(incoming, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
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


def clean_environment() -> dict[str, str]:
    """Return the environment variables of a zygote; programs see them."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "PYTHONHOME") if name in os.environ}
    return {**_CLEAN_ENVIRONMENT, **kept}


_JOBS_PER_WORKER = 2  # one runs while the other is started or its report is read
_MAX_SLEEPERS_PER_WORKER = 16
_START_TIMEOUT_S = 60.0
_MAX_FAILED_STARTS = 8
_FIRST_PAUSE_S = 0.05  # after a failed start; then twice as long each time, 6 s in all


class Pool:
    """Not thread-safe: only the scheduler's thread uses it.

    Args:
        n_workers: zygotes per kind, and the number of cores that jobs may keep busy.
        tiers: tried in this order.
        watch: called with each new worker.
        launch: starts zygotes.
        upkeep: when zygotes are replaced.
    """

    def __init__(
        self,
        n_workers: int,
        tiers: Sequence[str],
        watch: Callable[[Worker], None],
        launch: Launch = launch_here,
        upkeep: Upkeep = USUAL_UPKEEP,
    ) -> None:
        self.workers: list[Worker] = []
        self.refusals: list[str] = []
        """Why stronger tiers are not available on this machine."""
        self.guarantee = ""
        """What the tier in force promises; empty until a worker has been ready."""
        self.failure = ""
        """Set when no worker can be started; the scheduler reports and clears it."""
        self.is_refused = False
        """Whether none of the tiers is available on this machine."""
        self._n_workers = n_workers
        self._tiers = deque(tiers)
        self._watch = watch
        self._launch = launch
        self._upkeep = upkeep
        self._n_failed_starts = 0
        self._next_start = 0.0

    @property
    def tier(self) -> str:
        """The tier in force, or the next one to try."""
        return self._tiers[0]

    @property
    def is_starting(self) -> bool:
        """Whether some worker is still starting."""
        return any(not worker.ready for worker in self.workers)

    def is_full(self, n_busy: int) -> bool:
        """Whether `n_busy` jobs keep all cores busy."""
        return n_busy >= self._n_workers * _JOBS_PER_WORKER

    def worker_for(self, setup: Setup, busy: Sequence[Worker], asleep: Sequence[Worker]) -> Worker | None:
        """Return a worker of a kind that can take a job now; start another one if too few run.

        Args:
            setup: the kind.
            busy: the worker of each job that runs.
            asleep: the worker of each job that uses no processor.
        """
        if self.is_full(len(busy)):
            return None
        same = [worker for worker in self.workers if worker.setup is setup and not worker.is_worn_out]
        ready = [worker for worker in same if worker.ready and asleep.count(worker) < _MAX_SLEEPERS_PER_WORKER]
        best = min(ready, key=busy.count, default=None)
        if best is not None and best not in busy:
            return best
        may_start = len(same) < self._n_workers and all(worker.ready for worker in same)
        if may_start and monotonic() >= self._next_start:
            self._start(setup)
        return best if best is not None and busy.count(best) < _JOBS_PER_WORKER else None

    def note_ready(self, worker: Worker) -> None:
        """Record that a worker has reported that it is ready."""
        self._n_failed_starts = 0
        self.guarantee = worker.guarantee

    def find_expired(self, busy: Iterable[Worker]) -> list[Worker]:
        """Return the idle workers that have forked as often as their upkeep allows.

        Args:
            busy: the worker of each job that runs.
        """
        old = [worker for worker in self.workers if worker.is_worn_out]
        return [worker for worker in old if worker not in set(busy)] if old else []

    def retire(self, worker: Worker) -> None:
        """End a worker that runs nothing."""
        self.workers.remove(worker)
        worker.close()

    def remove_dead(self, worker: Worker) -> None:
        """Remove a worker that has died or refuses its tier."""
        self.workers.remove(worker)
        worker.kill()
        if worker.refusal:
            self._refuse(worker)
        elif not worker.ready:
            self._count_failed_start("they end at once")

    def close(self) -> None:
        """End all workers."""
        while self.workers:
            self.workers.pop().close()

    def forget(self) -> None:
        """Close the copies of the workers' sockets in a forked process; the workers belong to its parent."""
        while self.workers:
            self.workers.pop().forget()

    def _start(self, setup: Setup) -> None:
        try:
            worker = Worker(setup, self.tier, self._launch, self._upkeep)
        except WorkerDied as error:
            self._count_failed_start(str(error))
            return
        worker.deadline = monotonic() + _START_TIMEOUT_S
        self.workers.append(worker)
        self._watch(worker)

    def _refuse(self, worker: Worker) -> None:
        if worker.tier != self.tier:
            return  # another worker has refused it before
        if (reason := f"{worker.tier}: {worker.refusal}") not in self.refusals:
            self.refusals.append(reason)
        if len(self._tiers) > 1:
            self._tiers.popleft()
        else:
            self.is_refused = True
            self.failure = f"none of the required kinds of isolation is available here ({'; '.join(self.refusals)})"

    def _count_failed_start(self, error: str) -> None:
        self._next_start = monotonic() + _FIRST_PAUSE_S * 2**self._n_failed_starts
        self._n_failed_starts += 1
        if self._n_failed_starts >= _MAX_FAILED_STARTS:
            self._n_failed_starts = 0
            self.failure = f"the sandbox's workers do not start: {error}"
