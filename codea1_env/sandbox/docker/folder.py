"""The folder that a container needs to start: our source files, and the socket to which its process connects."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from codea1_env.sandbox.docker.owner import Owner

PREFIX = "codea1-docker-"
"""Start of the names of these folders; the owner follows."""

_ROOT = Path(__file__).parents[3]
_NEEDED_INSIDE = ("values", "sandbox", "sandbox/inside")


@contextmanager
def startup_folder(listener: socket.socket) -> Iterator[Path]:
    """Yield a folder to mount in a container; binds `listener` to the file `socket` in it.

    The container's user can read the folder and connect; other users of this machine cannot reach it.
    """
    private = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{Owner.here()}-"))
    try:
        shared = private / "shared"
        _copy_sources(shared)
        _bind(listener, shared)
        yield shared
    finally:
        shutil.rmtree(private, ignore_errors=True)  # a container that has connected no longer needs it


def owner_of(folder: Path) -> Owner | None:
    """Return the process that made such a folder, read from its name."""
    return Owner.parse(folder.name.removeprefix(PREFIX).rpartition("-")[0])


def _copy_sources(shared: Path) -> None:
    package = _ROOT / "codea1_env"
    for part in _NEEDED_INSIDE:
        for file in (*(package / part).glob("*.py"), *(package / part).glob("__pycache__/*.pyc")):
            target = shared / file.relative_to(_ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, target)  # keeps the time, by which a compiled file recognises its source
            target.chmod(0o644)
    for path in (shared, *shared.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)


def _bind(listener: socket.socket, folder: Path) -> None:
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        listener.bind(f"/proc/self/fd/{descriptor}/socket")  # the folder's own path may be too long for a socket
    finally:
        os.close(descriptor)
    (folder / "socket").chmod(0o666)
