"""Folders that somebody may not enter, that a process holds, or of git."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def powerless() -> Iterator[None]:
    """Within it, permissions of files hold, as they do for everybody but root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def is_held(folder: Path) -> bool:
    """Whether a process that starts now is kept out of a folder."""
    code = "import sys, pathlib, codea1_env.records.locks as locks; locks.hold_folder(pathlib.Path(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 or "another process is writing" in done.stderr, done.stderr
    return done.returncode != 0


def git(folder: Path, *words: str) -> None:
    """Run git in a folder, as somebody."""
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", folder, *author, *words], check=True, capture_output=True)
