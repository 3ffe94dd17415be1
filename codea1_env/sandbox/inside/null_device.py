"""Makes `/dev/null` available on every tier.

System call filters do not see paths, so they refuse to open any file for writing, and some tiers show no devices. But
the standard streams of a zygote are this device: opening it by name returns a duplicate of one of them.
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
    """Make `open` and `os.open` handle this name, in this process and all that it forks."""
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
