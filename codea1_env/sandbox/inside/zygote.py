"""A warm, sealed interpreter that forks one process per request and never reads what that process will run.

It ends when its control socket does, and everything that it forked ends with it.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # typeshed knows only signal
import errno
import gc
import importlib
import json
import marshal
import mmap
import os
import random
import resource
import select
import signal
import socket
import sys
import time
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any, NoReturn

from codea1_env.sandbox.inside import harness, kernel, program, seal
from codea1_env.sandbox.inside.channel import Channel, exit_now
from codea1_env.sandbox.wire import Notice, Op, Request
from codea1_env.values.decoding import decode
from codea1_env.values.encoding import encode

__all__ = ["main"]

# What programs import most: cold, these cost a child more than all of its job.
_PREIMPORTED = """
    abc array bisect calendar cmath collections.abc contextlib copy dataclasses datetime decimal enum fractions
    functools hashlib heapq io itertools math numbers operator queue re statistics string struct textwrap threading
    types typing unicodedata
"""
_CHANNEL_FD = 3
_MAX_FD = 256
_SIGCHLD = int(signal.SIGCHLD)


def main(options: dict[str, Any]) -> NoReturn:
    """Warm up, seal, say so, and serve until the control socket ends.

    Args:
        options: `control` (descriptor), `parent` (process id), `packages` (allowed site packages: name to folder),
            `preload` (those to import now), and what `seal` needs.
    """
    sys.meta_path.append(_AllowedPackages(options["packages"]))
    for name in (*_PREIMPORTED.split(), *options["preload"]):
        importlib.import_module(name)
    control = socket.socket(fileno=options["control"])
    _warm()
    try:
        sealed = seal.seal(options)
        own_bytes = _address_space()
        _try_a_child(own_bytes)
    except OSError as refusal:  # KernelRefuses, or /proc is not there
        control.send(Op.REFUSED + str(refusal).encode())
        exit_now(1)
    for name in [name for name in sys.modules if name.startswith("codea1_env")]:
        del sys.modules[name]  # what is in use stays in use, but no program can import it
    control.send(Op.READY + json.dumps(sealed).encode())
    _Zygote(control, own_bytes).serve()


class _AllowedPackages:
    """Finds the allowed site packages and no others: some hold the answers to the problems."""

    def __init__(self, folders: dict[str, str]) -> None:
        self._folders = folders

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        folder = self._folders.get(name) if path is None else None
        return PathFinder.find_spec(name, [folder], target) if folder else None


def _warm() -> None:
    """Do once what every child would otherwise do for itself, then keep the collector off all that exists."""
    source = "import math\nclass A:\n  def f(self, x: int = 1) -> list: return [i for i in range(x) if i % 2]\n"
    for _ in range(3):
        scope: dict[str, Any] = {}
        exec(compile(source, "<warm>", "exec"), scope)
        decode(encode(eval(compile("[A().f(9), (1.5, 'x'), {1: {2}}, None]", "<warm>", "eval"), scope)))
        for broken in ("f(", "raise ValueError(1)"):
            try:
                exec(compile(broken, "<warm>", "exec"), scope)
            except (SyntaxError, ValueError) as error:
                str(error)
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    gc.collect()
    gc.freeze()


class _Zygote:
    def __init__(self, control: socket.socket, own_bytes: int) -> None:
        self._control = control
        self._own_bytes = own_bytes
        self._child_of: dict[int, int] = {}
        self._pid_of: dict[int, int] = {}
        self._wake, wake = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> NoReturn:
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == self._wake:
                    os.read(self._wake, 4096)
                    self._reap()
                else:
                    self._obey()

    def _obey(self) -> None:
        data, fds, _, _ = socket.recv_fds(self._control, 64, 1)
        if not data:
            self._end()
        request = Request.unpack(data)
        if request.op == Op.FORK:
            self._fork(request, fds[0])
        elif request.op == Op.KILL and request.child in self._pid_of:
            os.kill(self._pid_of[request.child], signal.SIGKILL)
        elif request.op == Op.CPU and request.child in self._pid_of:
            self._tell_cpu(request.child)

    def _fork(self, request: Request, channel: int) -> None:
        try:
            pid = os.fork()
        except OSError:
            os.close(channel)
            self._tell(Notice(Op.EXIT, request.child, status=-1))
            return
        if pid == 0:
            _become_child(channel, request, self._own_bytes)
        os.close(channel)
        self._child_of[pid] = request.child
        self._pid_of[request.child] = pid

    def _tell_cpu(self, child: int) -> None:
        pid = self._pid_of[child]
        try:
            cpu_us = time.clock_gettime_ns((~pid << 3) | 2) // 1000  # the CPUCLOCK_SCHED clock of another process
        except OSError:  # only Linux has it
            cpu_us = 0
        self._tell(Notice(Op.CPU, child, cpu_us=cpu_us, pid=pid))

    def _reap(self) -> None:
        while self._child_of:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                return
            child = self._child_of.pop(pid, None)
            if child is not None:
                del self._pid_of[child]
                cpu_us = int((usage.ru_utime + usage.ru_stime) * 1e6)
                self._tell(Notice(Op.EXIT, child, status, cpu_us, usage.ru_maxrss))

    def _tell(self, notice: Notice) -> None:
        try:
            self._control.send(notice.pack())
        except OSError:
            self._end()

    def _end(self) -> NoReturn:
        for pid in self._child_of:
            os.kill(pid, signal.SIGKILL)
        os._exit(0)


def _try_a_child(own_bytes: int) -> None:
    """Fork and seal a process that does nothing: what fails here must not be taken for a program's fault later."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            seal.seal_child(60, own_bytes + (64 << 20))
            status = 0
        finally:
            exit_now(status)
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise kernel.KernelRefuses(f"a sealed process ends with status {status}")


def _become_child(channel: int, request: Request, own_bytes: int) -> NoReturn:
    try:
        # The C functions behind `signal`: whatever Python code a child runs costs it page faults.
        _signal.set_wakeup_fd(-1)
        _signal.signal(_SIGCHLD, _signal.SIG_DFL)
        if channel != _CHANNEL_FD:
            os.dup2(channel, _CHANNEL_FD)
        os.closerange(_CHANNEL_FD + 1, _MAX_FD)
        seal.seal_child(request.cpu_s, own_bytes + (request.memory_mb << 20))
        frames = Channel(_CHANNEL_FD)
        job = marshal.loads(frames.receive().payload)  # from trusted code, the same interpreter
        (harness if job["role"] == "harness" else program).run(frames, job)
    finally:
        exit_now(0)


def _address_space() -> int:
    """Return the size of this process in bytes (address space), found without /proc."""
    low, high = 0, 1 << 46
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    while high - low > 1 << 18:
        middle = (low + high) // 2
        resource.setrlimit(resource.RLIMIT_AS, (middle, hard))
        try:
            mmap.mmap(-1, mmap.PAGESIZE).close()
            high = middle
        except (OSError, MemoryError) as error:
            if isinstance(error, OSError) and error.errno not in (errno.ENOMEM, errno.EAGAIN):
                raise
            low = middle
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    return high
