"""The zygote's loop: forks, measures, kills and reports the end of jobs. Loaded after everything else, like `job`.

Flat on purpose: after each fork, every page of the zygote that this loop writes to costs it a page fault.
"""

from __future__ import annotations

import operator
import os
import select
import signal
import socket
import sys
import time
from typing import NoReturn

from codea1_env.sandbox.inside.job import become_job
from codea1_env.sandbox.wire import NOTICE, REQUEST, Op

__all__ = ["serve"]

_FD_SPACE = socket.CMSG_SPACE(4)
_FORK, _KILL, _CPU, _EXIT = Op.FORK, Op.KILL, Op.CPU, Op.EXIT
_NO_FORK = -1


def serve(control: socket.socket, own_bytes: int) -> NoReturn:
    """Do what is asked for on the control socket until it ends; all jobs end with it.

    Args:
        control: see `codea1_env.sandbox.wire`.
        own_bytes: address space of this process, to which that of a job is added.
    """
    _Server(control, own_bytes).serve()


class _Server:
    def __init__(self, control: socket.socket, own_bytes: int) -> None:
        self._control = control
        self._own_bytes = own_bytes
        self._number_of: dict[int, int] = {}
        self._pid_of: dict[int, int] = {}
        self._wake, wake = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, operator.is_)  # any function of two arguments: it is the descriptor that wakes us

    def serve(self) -> NoReturn:
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == self._wake:
                    os.read(fd, 4096)
                    self._reap()
                else:
                    self._obey()

    def _obey(self) -> None:
        data, ancillary, _, _ = self._control.recvmsg(64, _FD_SPACE)
        if not data:
            self._end()
        op, number, cpu_s, memory_mb = REQUEST.unpack(data)
        if op == _FORK:
            self._fork(number, int.from_bytes(ancillary[0][2], sys.byteorder), cpu_s, memory_mb)
        elif op == _KILL and number in self._pid_of:
            os.kill(self._pid_of[number], signal.SIGKILL)
        elif op == _CPU and number in self._pid_of:
            self._measure(number)

    def _fork(self, number: int, channel: int, cpu_s: int, memory_mb: int) -> None:
        try:
            pid = os.fork()
        except OSError:
            os.close(channel)
            self._tell(_EXIT, number, _NO_FORK, 0, 0, 0)
            return
        if pid == 0:
            become_job(channel, cpu_s, self._own_bytes + (memory_mb << 20))
        os.close(channel)
        self._number_of[pid] = number
        self._pid_of[number] = pid

    def _measure(self, number: int) -> None:
        pid = self._pid_of[number]
        try:
            cpu_us = time.clock_gettime_ns((~pid << 3) | 2) // 1000  # the CPUCLOCK_SCHED clock of another process
        except OSError:  # only Linux has it
            cpu_us = 0
        self._tell(_CPU, number, 0, cpu_us, 0, pid)

    def _reap(self) -> None:
        while self._number_of:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                return
            number = self._number_of.pop(pid, None)
            if number is not None:
                del self._pid_of[number]
                self._tell(_EXIT, number, status, int((usage[0] + usage[1]) * 1e6), usage[2], 0)

    def _tell(self, *fields: object) -> None:
        try:
            self._control.send(NOTICE.pack(*fields))
        except OSError:
            self._end()

    def _end(self) -> NoReturn:
        for pid in self._number_of:
            os.kill(pid, signal.SIGKILL)
        os._exit(0)
