"""Runs a posted program inside the sandbox for `run_code`, like a script with pipes as its standard streams.

The source of this file is the program of a job, and `run` is its entry point. Standard library only. The posted program
runs in the same process: the returned output is what that program claims to have printed, as with any script.

Two things differ from a script: `os._exit` raises an exception, which a program may catch; and if the process dies, or
is killed because it does not let Python run, its output is lost.
"""

from __future__ import annotations

import _thread
import atexit
import linecache
import os
import select
import signal
import sys
import threading
import time
import traceback
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

_FILE = "main.py"
_CHUNK = 65_536
_CHUNKS_AT_ONCE = 32


class Ran(NamedTuple):
    """What a program did."""

    stdout: bytes
    stderr: bytes
    return_code: int
    is_out_of_time: bool
    elapsed_s: float


def run(code: str, stdin: bytes, cpu_s: float, wall_s: float, max_bytes: int) -> Ran:
    """Run a program and return what it printed and how it ended.

    Args:
        code: source of the program.
        stdin: content of its standard input.
        cpu_s: processor seconds after which it is stopped; what it has printed by then is returned.
        wall_s: the same in wall-clock seconds.
        max_bytes: how much of the start of stdout and of stderr is returned, each.
    """
    started = time.perf_counter()
    pump = _Pump(stdin, max_bytes)
    clock = _Clock(cpu_s, wall_s, pump)
    return_code = _run_to_the_end(code, clock, pump)
    stdout, stderr = pump.output()
    return Ran(stdout, stderr, return_code, clock.is_over, time.perf_counter() - started)


class _OutOfTime(BaseException):
    """The time limit is reached. Not an Exception, so that few programs catch it."""


class _ExitNow(BaseException):
    """The program has called `os._exit`."""

    def __init__(self, code: int) -> None:
        self.code = code


class _Clock:
    """Stops the program by an exception, which it may catch; the sandbox's own limits apply later."""

    def __init__(self, cpu_s: float, wall_s: float, pump: _Pump) -> None:
        self.is_over = False
        self._pump = pump
        for number in (signal.SIGPROF, signal.SIGALRM):
            signal.signal(number, self._end)
        signal.setitimer(signal.ITIMER_PROF, cpu_s, 0.1)
        signal.setitimer(signal.ITIMER_REAL, wall_s, 1.0)

    def _end(self, *_: object) -> NoReturn:
        self.is_over = True
        self._pump.output()
        raise _OutOfTime

    def stop(self) -> None:
        """Switch the clock off, so that it no longer stops the program."""
        for number in (signal.SIGPROF, signal.SIGALRM):
            signal.signal(number, signal.SIG_IGN)


class _Pump:
    """The other ends of descriptors 0, 1 and 2, in a thread."""

    def __init__(self, stdin: bytes, max_bytes: int) -> None:
        self._unsent = memoryview(stdin)
        self._max_bytes = max_bytes
        self._output: list[bytes] | None = None
        self._is_complete = _thread.allocate_lock()
        self._is_complete.acquire()
        self._stop_read, self._stop_write = os.pipe()
        theirs, self._stdin = os.pipe()
        _move(theirs, 0)
        os.set_blocking(self._stdin, False)
        self._outputs: dict[int, bytearray] = {}
        for number in (1, 2):
            ours, theirs = os.pipe()
            _move(theirs, number)
            os.set_blocking(ours, False)
            self._outputs[ours] = bytearray()
        _thread.start_new_thread(
            self._run, ()
        )  # not in `threading`, so that the program does not find the thread there
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", 1, "utf-8", "backslashreplace", closefd=False)  # noqa: SIM115

    def output(self) -> list[bytes]:
        """Return what was written to descriptors 1 and 2 before the first call of this; discard the rest."""
        if self._output is None:
            os.write(self._stop_write, b"?")
            self._is_complete.acquire()
        return self._output or [b"", b""]

    def _run(self) -> None:
        poll = select.poll()
        for fd in (self._stop_read, *self._outputs):
            poll.register(fd, select.POLLIN)
        poll.register(self._stdin, select.POLLOUT)
        while True:
            for fd, _ in poll.poll():
                if fd == self._stdin:
                    self._feed(poll)
                elif fd in self._outputs:
                    self._drain(fd, poll)
                else:
                    self._finish(poll)

    def _feed(self, poll: Any) -> None:
        try:
            self._unsent = self._unsent[os.write(self._stdin, self._unsent[:_CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:  # the program has closed its end
            self._unsent = self._unsent[:0]
        if not self._unsent:
            poll.unregister(self._stdin)
            os.close(self._stdin)

    def _drain(self, fd: int, poll: Any) -> None:
        data = b"x"
        for _ in range(_CHUNKS_AT_ONCE):
            try:
                data = os.read(fd, _CHUNK)
            except BlockingIOError:
                return
            if self._output is None:
                output = self._outputs[fd]
                output += data[: self._max_bytes - len(output)]
        if not data:  # closed by the program
            poll.unregister(fd)

    def _finish(self, poll: Any) -> None:
        os.read(self._stop_read, 1)
        for fd in self._outputs:
            self._drain(fd, poll)
        self._output = [bytes(output) for output in self._outputs.values()]
        self._is_complete.release()


def _move(fd: int, number: int) -> None:
    os.dup2(fd, number)
    os.close(fd)


def _run_to_the_end(code: str, clock: _Clock, pump: _Pump) -> int:
    """Run the program as an interpreter runs a script; return its exit code."""

    def exit_now(status: int) -> NoReturn:
        pump.output()
        raise _ExitNow(status)

    os._exit = exit_now
    try:
        return_code = _run_script(code)
        threading._shutdown()  # type: ignore[attr-defined]  # what the interpreter calls to wait for threads and pools
        atexit._run_exitfuncs()
        _flush()
    except _OutOfTime:
        return_code = 1
    except _ExitNow as leaving:
        return_code = leaving.code
    except BaseException:  # noqa: BLE001  -- from a thread, an exit handler or a closed stream
        return_code = 1
    finally:
        clock.stop()
    return return_code & 0xFF


def _run_script(code: str) -> int:
    module = ModuleType("__main__")
    module.__file__ = _FILE
    sys.modules["__main__"] = module
    sys.argv = [_FILE]
    linecache.cache[_FILE] = len(code), None, code.splitlines(keepends=True), _FILE
    try:
        exec(compile(code, _FILE, "exec", dont_inherit=True), vars(module))
    except (_OutOfTime, _ExitNow):
        raise
    except SystemExit as leaving:
        return _exit_code(leaving)
    except BaseException as error:  # noqa: BLE001  -- an untrusted program may raise anything
        _print(error)
        return 1
    return 0


def _exit_code(leaving: SystemExit) -> int:
    if leaving.code is None or isinstance(leaving.code, int):
        return leaving.code or 0
    print(leaving.code, file=sys.stderr)
    return 1


def _print(error: BaseException) -> None:
    trace = error.__traceback__.tb_next if error.__traceback__ else None
    if sys.excepthook is not sys.__excepthook__:
        sys.excepthook(type(error), error, trace)
    else:  # the default hook would read the program's lines from a file
        traceback.print_exception(type(error), error, trace)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
