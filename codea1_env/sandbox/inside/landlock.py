"""Tier `landlock`: only visible files can be opened, whatever their permissions. Needs no privilege."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator

from codea1_env.sandbox.inside import kernel
from codea1_env.sandbox.inside.layout import Layout

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH, _GET_VERSION = 1, 1
_READ_FILE, _READ_DIR = 4, 8
_FS_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""All file rights that each version of the interface knows."""
_NET_SINCE, _NET_RIGHTS = 4, 3  # bind and connect
_SCOPE_SINCE, _SCOPES = 6, 3  # abstract local sockets and signals


def restrict(visible: Layout) -> None:
    """Allow this process and all that it forks to open only the visible files, and only for reading.

    Raises:
        KernelRefuses: this kernel does not support Landlock.
    """
    version = kernel.syscall(_CREATE_RULESET, None, 0, _GET_VERSION, what="Landlock")
    handled = _FS_RIGHTS[max(known for known in _FS_RIGHTS if known <= version)]
    fields = [handled]
    if version >= _NET_SINCE:
        fields.append(_NET_RIGHTS)
    if version >= _SCOPE_SINCE:
        fields.append(_SCOPES)
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    ruleset = kernel.syscall(_CREATE_RULESET, attributes, len(attributes), 0, what="Landlock")
    try:
        for path in _readable(visible):
            _allow_reading(ruleset, path)
        kernel.syscall(_RESTRICT_SELF, ruleset, 0, what="Landlock")
    finally:
        os.close(ruleset)


def _readable(visible: Layout) -> Iterator[str]:
    """Yield the readable paths. Landlock cannot exclude a part of an allowed folder, so hidden parts are left out."""
    for path in visible.shown:
        yield from _without_hidden(path, visible.hidden)
    yield from visible.packages
    yield from visible.devices


def _without_hidden(path: str, hidden: tuple[str, ...]) -> Iterator[str]:
    if path in hidden:
        return
    if not any(other.startswith(path + "/") for other in hidden):
        yield path
        return
    for entry in os.scandir(path):
        if not entry.is_symlink():
            yield from _without_hidden(entry.path, hidden)


def _allow_reading(ruleset: int, path: str) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # removed, or this user may not open it
        return
    try:
        rights = _READ_FILE | (_READ_DIR if os.path.isdir(path) else 0)
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, fd), 12)
        kernel.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0, what="Landlock")
    finally:
        os.close(fd)
