"""`/dev/null` can be opened on every tier.

System call filters see no paths, so they refuse to open any file for writing, and some tiers show no devices. But the
standard streams of a zygote are that device: who opens it by its name gets a copy of one.
"""

from __future__ import annotations

import builtins
import io
import os
from typing import Any

_NAME = "/dev/null"
_STREAM = 1
_open, _open_descriptor, _dup, _fspath = io.open, os.open, os.dup, os.fspath


def install() -> None:
    """Have `open` and `os.open` know the name, in this process and all that it will fork."""
    builtins.open = io.open = open
    os.open = open_descriptor


def _is_null(file: Any) -> bool:
    return file == _NAME if type(file) is str else isinstance(file, os.PathLike) and _fspath(file) == _NAME


def open(file: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: A001  -- programs see its name
    """Open a file, as `io.open` does."""
    return _open(_dup(_STREAM) if _is_null(file) else file, *args, **kwargs)


def open_descriptor(path: Any, *args: Any, **kwargs: Any) -> int:
    """Open a descriptor, as `os.open` does."""
    return _dup(_STREAM) if _is_null(path) else _open_descriptor(path, *args, **kwargs)
