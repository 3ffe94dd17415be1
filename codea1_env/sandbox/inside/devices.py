"""Makes devices and the command line available on every tier that programs open by name, and a limit that they set.

System call filters do not see paths, so they refuse to open any file for writing, and some tiers show no devices. But
standard error of a zygote is the null device, and standard input and output exist, too: opening one of them by name
returns a duplicate. The command line is that of a script, where the kernel would show the sandbox's. Raising the limit
of the stack succeeds without effect, since many programs do so without need.
"""

from __future__ import annotations

import builtins
import io
import os
import resource
import sys
from typing import Any

_STREAMS = {
    "/dev/stdin": 0, "/dev/fd/0": 0, "/proc/self/fd/0": 0,
    "/dev/stdout": 1, "/dev/fd/1": 1, "/proc/self/fd/1": 1,
    "/dev/null": 2, "/dev/stderr": 2,
}  # fmt: skip
_COMMAND_LINE, _PIPE_BYTES = "/proc/self/cmdline", 1 << 16
_STACK = resource.RLIMIT_STACK
_open, _open_descriptor, _dup, _fspath, _setrlimit = io.open, os.open, os.dup, os.fspath, resource.setrlimit
_pipe, _write, _close, _encoded = os.pipe, os.write, os.close, os.fsencode


def install() -> None:
    """Make `open`, `os.open` and `resource.setrlimit` handle them, in this process and all that it forks."""
    builtins.open = io.open = open
    os.open = open_descriptor
    resource.setrlimit = setrlimit


def _stream_of(file: Any) -> int | None:
    """Return a new descriptor of what a name stands for; None if it stands for a file."""
    if type(file) is not str and isinstance(file, os.PathLike):
        file = _fspath(file)
    if type(file) is not str:
        return None
    if file == _COMMAND_LINE:
        stream, writing = _pipe()
        _write(writing, b"".join(_encoded(text) + b"\0" for text in sys.orig_argv)[:_PIPE_BYTES])
        _close(writing)
        return stream
    return _dup(_STREAMS[file]) if file in _STREAMS else None


def open(file: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: A001  -- programs see its name
    """Open a file, as `io.open` does."""
    stream = _stream_of(file)
    return _open(file if stream is None else stream, *args, **kwargs)


def open_descriptor(path: Any, *args: Any, **kwargs: Any) -> int:
    """Open a descriptor, as `os.open` does."""
    stream = _stream_of(path)
    return _open_descriptor(path, *args, **kwargs) if stream is None else stream


def setrlimit(limited: int, limits: Any, /) -> None:
    """Set a limit of this process, as `resource.setrlimit` does; that of the stack stays."""
    if limited != _STACK:
        _setrlimit(limited, limits)
