"""System call filters: which system calls the zygote and its children may make.

Every child inherits `zygote_filter` at no cost per job. `child_filter` removes the few calls that only the zygote needs
(to fork, kill and pass descriptors). Both refuse with EPERM, so that a program gets an ordinary exception. Calls that
take their flags by pointer (openat2, clone3) return ENOSYS: libraries then use the older calls, whose flags a filter
can check.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import struct
import sys
from collections.abc import Callable, Iterable, Sequence

from codea1_env.sandbox.inside import kernel
from codea1_env.sandbox.inside.syscalls import NUMBERS

_CHECKED = ("open", "openat", "openat2", "clone", "clone3", "prctl", "prlimit64", "ioctl", "fcntl", "socketpair")

_WRITING = (
    os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | getattr(os, "O_TMPFILE", 0) & ~getattr(os, "O_DIRECTORY", 0)
)
_CLONE_THREAD = 0x10000
_CLONE_NAMESPACES = 0x7E020080
_PRCTL_ALLOWED = (1, 15, 16, 38, 0x53564D41)  # PDEATHSIG, SET_NAME, GET_NAME, NO_NEW_PRIVS, SET_VMA (malloc)
_PRCTL_CHILD = (15, 16, 0x53564D41)
_IOCTL_ALLOWED = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)  # TCGETS WINSZ FIONREAD FIONBIO FIONCLEX FIOCLEX
# DUPFD GETFD SETFD GETFL SETFL DUPFD_CLOEXEC GETPIPE_SZ GET_SEALS; with F_SETOWN the kernel could send signals for us.
_FCNTL_ALLOWED = (0, 1, 2, 3, 4, 1030, 1032, 1034)
_AF_UNIX = 1

_ALLOW, _KILL, _ERRNO = 0x7FFF_0000, 0x8000_0000, 0x0005_0000
_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT = 0x4000_0000
_LOAD, _AND, _JUMP_EQ, _JUMP_GE, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_OFFSET_NUMBER, _OFFSET_ARCH, _OFFSET_ARGS = 0, 4, 16
_SET_MODE_FILTER = 1

_ANY_PID = 0x7E57_71D5  # larger than any process id

_Instruction = tuple[int, int, int, int]


def zygote_filter() -> bytes:
    """Return the filter that allows what sealed interpreters need, and nothing else."""
    program = _prologue()
    program += _if("openat", _arg_masked(2, _WRITING, errno.EROFS)) + _if("open", _arg_masked(1, _WRITING, errno.EROFS))
    program += _if("openat2", _refuse(errno.ENOSYS)) + _if("clone3", _refuse(errno.ENOSYS))
    program += _if("clone", _arg_masked(0, _CLONE_NAMESPACES, errno.EPERM))
    program += _if("prctl", _arg_among(0, _PRCTL_ALLOWED)) + _if("prlimit64", _arg_among(0, (0,)))
    program += _if("ioctl", _arg_among(1, _IOCTL_ALLOWED)) + _if("fcntl", _arg_among(1, _FCNTL_ALLOWED))
    program += _if("socketpair", _arg_among(0, (_AF_UNIX,)))
    for name in NUMBERS:
        if name not in _CHECKED:
            program += _if(name, [(_RETURN, 0, 0, _ALLOW)])
    return _assemble(program + _refuse(errno.EPERM))


def child_filter() -> bytes:
    """Return the filter for a process that runs an untrusted program.

    The process may ask about and signal only `_ANY_PID`, and never with SIGKILL: so only this project or the system can
    have killed a process that dies of SIGKILL.
    """
    program = [(_LOAD, 0, 0, _OFFSET_NUMBER)]
    program += _if("clone", _arg_has(0, _CLONE_THREAD))
    for name in ("fork", "vfork", "recvmsg", "sendmsg", "seccomp", "wait4", "waitid", "sysinfo"):
        program += _if(name, _refuse(errno.EPERM))
    for name, position in (("kill", 1), ("tgkill", 2)):
        program += _if(name, _arg_is_not(position, signal.SIGKILL) + _arg_among(0, (_ANY_PID,)))
    for name, position in (("getpgid", 0), ("getsid", 0), ("getpriority", 1)):
        program += _if(name, _arg_among(position, (0, _ANY_PID)))
    # No new limits: exceeding a limit on processor time is a SIGKILL, too.
    program += _if("setrlimit", _refuse(errno.EPERM)) + _if("prlimit64", _arg_is_null(2))
    program += _if("prctl", _arg_among(0, _PRCTL_CHILD))
    return _assemble([*program, (_RETURN, 0, 0, _ALLOW)])


def installer(program: bytes) -> Callable[[int], None]:
    """Return a function that installs a filter, irrevocably, for the process that calls it and all that it forks.

    Everything is prepared here, so that each child only makes the system call. The returned function takes the id of
    the one process that may be signalled, if the filter allows one. It raises `KernelRefuses` if the kernel has no
    filters.
    """
    code = bytearray(program)
    words = memoryview(code).cast("I")
    mark = _ANY_PID.to_bytes(4, sys.byteorder)
    pids = [offset // 4 for offset in range(0, len(code), 4) if code[offset : offset + 4] == mark]
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))  # `words` prevents a reallocation
    descriptor = struct.pack("HxxxxxxP", len(code) // 8, address)
    syscall, number = kernel.quick("syscall"), _number("seccomp")

    def install(pid: int) -> None:
        for place in pids:
            words[place] = pid
        if syscall(number, _SET_MODE_FILTER, 0, descriptor) < 0:
            raise kernel.KernelRefuses("no system call filters")

    return install


def _number(name: str) -> int:
    return NUMBERS[name][os.uname().machine == "aarch64"]


def _prologue() -> list[_Instruction]:
    return [
        (_LOAD, 0, 0, _OFFSET_ARCH),
        (_JUMP_EQ, 1, 0, _AUDIT_ARCH[os.uname().machine]),
        (_RETURN, 0, 0, _KILL),  # another architecture has other numbers
        (_LOAD, 0, 0, _OFFSET_NUMBER),
        (_JUMP_GE, 0, 1, _X32_BIT),
        (_RETURN, 0, 0, _KILL if os.uname().machine == "x86_64" else _ERRNO | errno.EPERM),
    ]


def _if(name: str, then: Sequence[_Instruction]) -> list[_Instruction]:
    """Run `then`, which must return, for one system call; the accumulator contains the call's number."""
    number = _number(name)
    return [] if number < 0 else [(_JUMP_EQ, 0, len(then), number), *then]


def _refuse(error: int) -> list[_Instruction]:
    return [(_RETURN, 0, 0, _ERRNO | error)]


def _load_arg(index: int) -> _Instruction:
    return (_LOAD, 0, 0, _OFFSET_ARGS + 8 * index)  # the low word: the kernel reads these arguments as int


def _arg_is_null(index: int) -> list[_Instruction]:
    low, high = _OFFSET_ARGS + 8 * index, _OFFSET_ARGS + 8 * index + 4
    return [
        (_LOAD, 0, 0, low),
        (_JUMP_EQ, 0, 3, 0),
        (_LOAD, 0, 0, high),
        (_JUMP_EQ, 0, 1, 0),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
    ]


def _arg_is_not(index: int, refused: int) -> list[_Instruction]:
    return [_load_arg(index), (_JUMP_EQ, 0, 1, refused), (_RETURN, 0, 0, _ERRNO | errno.EPERM)]


def _arg_masked(index: int, forbidden: int, error: int) -> list[_Instruction]:
    return [
        _load_arg(index),
        (_AND, 0, 0, forbidden),
        (_JUMP_EQ, 1, 0, 0),
        (_RETURN, 0, 0, _ERRNO | error),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _arg_has(index: int, needed: int) -> list[_Instruction]:
    return [
        _load_arg(index),
        (_AND, 0, 0, needed),
        (_JUMP_EQ, 1, 0, needed),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _arg_among(index: int, allowed: Sequence[int]) -> list[_Instruction]:
    checks = [(_JUMP_EQ, len(allowed) - position, 0, value) for position, value in enumerate(allowed)]
    return [_load_arg(index), *checks, (_RETURN, 0, 0, _ERRNO | errno.EPERM), (_RETURN, 0, 0, _ALLOW)]


def _assemble(program: Iterable[_Instruction]) -> bytes:
    return b"".join(struct.pack("HBBI", *instruction) for instruction in program)
