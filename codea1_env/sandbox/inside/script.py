"""The process of a program that gets texts and writes standard output. It gets the texts of one call and ends.

The program's standard output is the channel itself. After an OUTPUT frame every byte on the channel is output, and the
exit status, which trusted code gets from the kernel, says whether the run counts. So a program can write nothing there
but its own output. If an exception ends it, a note about the exception follows its output.
"""

from __future__ import annotations

import _thread
import atexit
import builtins
import gc
import io
import os
import sys
from _weakref import ref as weak_reference
from collections.abc import Callable
from typing import Any, NamedTuple

from codea1_env.sandbox.inside import program
from codea1_env.sandbox.inside.channel import BUILTINS, Channel, as_error_answer, exit_now
from codea1_env.sandbox.wire import LOAD, Tag, end_note
from codea1_env.values.decoding import decode

_STDIN, _STDOUT, _OUTGOING, _INCOMING = 0, 1, 3, 4
_FLUSH_FAILED = 120  # CPython's status
_COMMAND_LINE = 1 << 17  # bytes of all arguments, each with its NUL: as much as Linux allows for one
_FORGOTTEN = (
    "path",
    "argv",
    "last_type",
    "last_value",
    "last_traceback",
    "path_hooks",
    "path_importer_cache",
    "meta_path",
)
"""Attributes of `sys` that CPython sets to None before the last finalisers run, so that these can import nothing."""
_modules, _compile, _eval, _exec, _open = sys.modules, compile, eval, exec, io.open


class _ProgramInput(NamedTuple):
    """The result of a call of the entry point: what the program is given."""

    content: bytes
    """What the program reads from standard input."""
    arguments: tuple[str, ...] = ()
    """What follows the program's name in `sys.argv`."""


def _stdin(text: str) -> _ProgramInput:
    if type(text) is not str:
        raise TypeError(f"the input must be text, got {type(text).__name__}")
    content = text.replace("\r\n", "\n").encode()
    return _ProgramInput(content if not content or content.endswith(b"\n") else content + b"\n")


def _command_line(*texts: str) -> _ProgramInput:
    for text in texts:
        if type(text) is not str:
            raise TypeError(f"an argument must be text, got {type(text).__name__}")
        if "\0" in text:
            raise ValueError("an argument contains a NUL character")
    if sum(len(text.encode()) + 1 for text in texts) > _COMMAND_LINE:
        raise ValueError(f"the arguments are longer than {_COMMAND_LINE:,} bytes")
    return _ProgramInput(b"", texts)


_ENTRY_POINTS: dict[str, Callable[..., _ProgramInput]] = {"stdin": _stdin, "command_line": _command_line}
"""By the kind of problem: what a call of the entry point calls."""
for _entry_point in _ENTRY_POINTS.values():
    _entry_point.__qualname__ = "run"  # in messages about wrong arguments


def run(channel: Channel, job: dict[str, Any]) -> None:
    """Compile the program; if the job has a call, run the program on its input, and end."""
    codes = []
    for name in ("preamble", "program"):
        code = program.compile_program(channel, job[name])
        if code is None:
            return
        codes.append(code)
    channel.send(Tag.LOADED, LOAD)
    for number, call in job["calls"]:
        try:
            value = _evaluate_call(call, job["entry"], _ENTRY_POINTS[job["kind"]])
        except BaseException as error:  # noqa: BLE001  -- a tester's text may raise anything
            channel.send_error(number, error)
            return
        if type(value) is not _ProgramInput:  # a literal: a tester's prediction
            channel.send_value(number, value, job["value_bytes"])
            return
        channel.send(Tag.OUTPUT, number)
        _connect(value)
        _execute(codes, number)


def _evaluate_call(call: str | bytes, name: str, entry_point: Callable[..., _ProgramInput]) -> Any:
    """Return the value of a call, given as an expression or as encoded arguments."""
    if type(call) is bytes:
        args, kwargs = decode(call)
        return entry_point(*args, **kwargs)
    return _eval(_compile(call, "<call>", "eval"), {"__builtins__": BUILTINS, name: entry_point})


def _connect(source: _ProgramInput) -> None:
    """Connect standard input with a pipe that holds its content, and standard output with the channel."""
    content = source.content
    reading, writing = os.pipe()
    os.dup2(reading, _STDIN)
    os.dup2(_OUTGOING, _STDOUT)
    for fd in (reading, _OUTGOING, _INCOMING):
        os.close(fd)
    os.set_blocking(writing, False)
    try:
        rest = content[os.write(writing, content) :]
    except BlockingIOError:
        rest = content
    os.set_blocking(writing, True)
    if rest:
        _thread.start_new_thread(_feed, (writing, rest))
    else:
        os.close(writing)
    sys.stdin = sys.__stdin__ = _stream(_STDIN, "<stdin>", "r")  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _stream(_STDOUT, "<stdout>", "w")  # type: ignore[misc]
    sys.argv += source.arguments
    sys.orig_argv += source.arguments


def _stream(fd: int, name: str, mode: str) -> Any:
    """Return a standard stream as CPython makes it: with this name, and a carriage return is a character."""
    stream: Any = _open(fd, mode, encoding="utf-8", newline="\n", closefd=False)
    stream.buffer.raw.name = name
    return stream


def _feed(writing: int, rest: bytes) -> None:
    """Write an input that is longer than a pipe's buffer."""
    try:
        while rest:
            rest = rest[os.write(writing, rest) :]
    except OSError:  # the program has closed its standard input
        pass
    os.close(writing)


def _execute(codes: list[Any], number: int) -> None:
    """Run the program as the main module, as far as the end of the process."""
    module = program.main_module("__main__")
    namespace = vars(module)
    atexit._clear()
    note, status, stdout = b"", 0, sys.stdout
    try:
        sys.setrecursionlimit(sys.getrecursionlimit() + 1)  # for `_execute`
        for code in codes:
            _exec(code, namespace)
    except SystemExit as error:
        status = _status(_code_of(error))
        note = end_note(*as_error_answer(error), number) if status else b""
    except BaseException as error:  # noqa: BLE001  -- an untrusted program may raise anything
        status, note = _call_hook(error), end_note(*as_error_answer(error), number)
    finally:
        reference = weak_reference(module)
        del module, namespace, codes
        try:
            status = _finish(reference, stdout) or status
            _write(note if status else b"")
        finally:
            exit_now(status)


def _status(code: object) -> int:
    if code is None:
        return 0
    if not isinstance(code, int):
        return 1
    return code & 0xFF if -(1 << 63) <= code < 1 << 63 else 255


def _code_of(ending: SystemExit) -> object:
    try:
        return ending.code
    except BaseException:  # noqa: BLE001  -- a property of a class of the program's own
        return 1


def _call_hook(error: BaseException) -> int:
    """Let the program's own `sys.excepthook`, if it has one, show an exception; return the exit status."""
    try:
        hook = sys.excepthook
        if hook is not sys.__excepthook__:
            hook(type(error), error, error.__traceback__)
    except SystemExit as ending:
        return _status(_code_of(ending))
    except BaseException:  # noqa: BLE001  -- CPython shows both
        pass
    return 1


def _finish(module: Any, stdout: Any) -> int:
    """End as CPython ends: wait for threads, call exit handlers, flush, drop the main module and whatever it held.

    Args:
        module: weak reference to the main module; nothing here may hold it.
        stdout: the original standard output.

    Returns:
        The exit status, which is not 0 if standard output cannot be flushed.
    """
    status = 0
    try:
        if "threading" in _modules:
            _modules["threading"]._shutdown()
        atexit._run_exitfuncs()
    except BaseException:  # noqa: BLE001  -- CPython shows it and goes on
        pass
    try:
        for name in ("stdout", "stderr"):
            current = getattr(sys, name, None)
            if current is not None and not _is_closed(current):
                current.flush()
            del current  # else its own end would come after the last flush
    except BaseException:  # noqa: BLE001  -- an untrusted program may raise anything
        status = _FLUSH_FAILED
    try:
        if gc.isenabled():
            gc.collect()  # what is garbage already ends before the streams change
        sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__
        for name in _FORGOTTEN:
            setattr(sys, name, None)
        builtins._ = None  # type: ignore[attr-defined]  # what `sys.displayhook` has shown last
        _modules.clear()
        gc.collect()  # ends generators and objects in cycles, some of which write when they end
        if (held := module()) is not None:
            vars(held).clear()
        stdout.flush()
    except BaseException:  # noqa: BLE001  -- CPython shows it and goes on
        pass
    return status


def _is_closed(stream: Any) -> bool:
    try:
        return bool(stream.closed)
    except Exception:  # noqa: BLE001  -- as CPython takes it
        return False


def _write(note: bytes) -> None:
    while note:
        note = note[os.write(_STDOUT, note) :]
