"""The zygote's loop: forks, measures, kills and reports the end of jobs. Loaded after everything else, like `job`.

Flat on purpose: after each fork, every page of the zygote that this loop writes to costs a page fault, and each look-up
of an object writes to its reference count.
"""

from __future__ import annotations

import _socket
import operator
import os
import select
import signal
import struct
import sys
import time
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from codea1_env.sandbox.inside.job import become_job
from codea1_env.sandbox.wire import NOTICE, REQUEST, Op

_FD_SPACE = _socket.CMSG_SPACE(8)
_NO_FORK = -1
_FRAMES_OF_A_JOB = 7  # from `serve` to the code that loads a program, which must have as many frames left as a script


class _Ended(NamedTuple):
    """A process that has ended."""

    pid: int
    """0 if none has ended."""
    status: int = 0
    cpu_us: int = 0


class _Children(NamedTuple):
    """All forked processes that have not been waited for."""

    number_of: dict[int, int]
    pid_of: dict[int, int]


_SendNotice = Callable[[bytes, int, int, int, int], None]
"""(op, number, status, processor time in microseconds, process id), as in a `Notice`."""


def serve(control: _socket.socket, own_bytes: int, seal_child: Callable[[int, int], None]) -> NoReturn:
    """Handle the requests on the control socket until it is closed; then kill all jobs and exit.

    Args:
        control: see `codea1_env.sandbox.wire`.
        own_bytes: address space of this process; a job may use its own limit in addition.
        seal_child: removes rights from a forked process; see `seal.child_seal`.
    """

    sys.setrecursionlimit(sys.getrecursionlimit() + _n_frames() + _FRAMES_OF_A_JOB)

    def become(outgoing: int, incoming: int, cpu_s: int, memory_mb: int) -> NoReturn:
        become_job(outgoing, incoming, cpu_s, own_bytes + (memory_mb << 20), seal_child)

    children = _Children({}, {})
    send_notice = _notice_sender(control, children)
    handle_request = _request_handler(control, children, send_notice, become)
    reap, wake, read = _reaper(children, send_notice), _wake_at_ends(), os.read
    poller = select.poll()
    poller.register(control, select.POLLIN)
    poller.register(wake, select.POLLIN)
    poll = poller.poll
    while True:
        for fd, _ in poll():
            if fd == wake:
                read(wake, 4096)
                reap()
            else:
                handle_request()


def _n_frames() -> int:
    """Return how many frames lie below the function that calls this."""
    frame, n_frames = sys._getframe(1), 0
    while frame.f_back is not None:
        frame, n_frames = frame.f_back, n_frames + 1
    return n_frames


def _notice_sender(control: _socket.socket, children: _Children) -> _SendNotice:
    send, notice = control.send, NOTICE.pack

    def send_notice(op: bytes, number: int, status: int, cpu_us: int, pid: int) -> None:
        try:
            send(notice(op, number, status, cpu_us, pid))
        except OSError:
            _end(children)

    return send_notice


def _request_handler(
    control: _socket.socket,
    children: _Children,
    send_notice: _SendNotice,
    become: Callable[[int, int, int, int], NoReturn],
) -> Callable[[], None]:
    """Return a function that reads and handles the next request."""
    number_of, pid_of = children
    fork_op, receive, read_request, read_fds = Op.FORK, control.recvmsg, REQUEST.unpack, struct.Struct("ii").unpack
    fork, close = os.fork, os.close

    def handle_request() -> None:
        data, ancillary, _, _ = receive(64, _FD_SPACE)
        if not data:
            _end(children)
        op, number, cpu_s, memory_mb = read_request(data)
        if op != fork_op:
            answer(op, number)
            return
        outgoing, incoming = read_fds(ancillary[0][2])
        try:
            pid = fork()
        except OSError:
            pid = _NO_FORK
        if pid == 0:
            become(outgoing, incoming, cpu_s, memory_mb)
        close(incoming)
        close(outgoing)
        if pid == _NO_FORK:
            send_notice(Op.EXIT, number, _NO_FORK, 0, 0)
            return
        number_of[pid] = number
        pid_of[number] = pid

    def answer(op: bytes, number: int) -> None:
        pid = pid_of.get(number)
        if pid is not None and op == Op.KILL:
            os.kill(pid, signal.SIGKILL)
        elif pid is not None and op == Op.CPU:
            send_notice(op, number, 0, _cpu_us(pid), pid)

    return handle_request


def _reaper(children: _Children, send_notice: _SendNotice) -> Callable[[], None]:
    """Return a function that reports all processes that have ended."""
    number_of, pid_of = children
    exit_op, ended = Op.EXIT, _reap

    def reap() -> None:
        while number_of:
            pid, status, cpu_us = ended()
            if not pid:
                return
            number = number_of.pop(pid, None)
            if number is not None:
                del pid_of[number]
                send_notice(exit_op, number, status, cpu_us, 0)

    return reap


def _wake_at_ends() -> int:
    """Return a descriptor that becomes readable when a process may have ended."""
    wake, waker = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, operator.is_)  # any function of two arguments: only the descriptor matters
    return wake


def _end(children: _Children) -> NoReturn:
    for pid in children.number_of:
        os.kill(pid, signal.SIGKILL)
    os._exit(0)


_NOTHING = _Ended(0)
_new = tuple.__new__

if sys.platform == "linux":
    _waitid, _waitpid, _clock = os.waitid, os.waitpid, time.clock_gettime_ns
    _ANY, _PEEK = os.P_ALL, os.WEXITED | os.WNOHANG | os.WNOWAIT

    def _cpu_us(pid: int) -> int:
        """Return the processor time of another process, by the id of its CPUCLOCK_SCHED clock."""
        try:
            return _clock((~pid << 3) | 2) // 1000
        except OSError:
            return 0

    def _reap() -> _Ended:
        """Find an ended process, measure it, reap it. `wait4` does this in one call, but writes to more memory."""
        ended = _waitid(_ANY, 0, _PEEK)
        if ended is None:
            return _NOTHING
        pid = ended[0]
        cpu_us = _cpu_us(pid)
        return _new(_Ended, (pid, _waitpid(pid, 0)[1], cpu_us))  # faster than _Ended(...)

else:

    def _cpu_us(pid: int) -> int:
        return 0

    def _reap() -> _Ended:
        pid, status, usage = os.wait4(-1, os.WNOHANG)
        return _Ended(pid, status, int((usage[0] + usage[1]) * 1e6))
