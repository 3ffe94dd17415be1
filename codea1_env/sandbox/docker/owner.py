"""The process that made a container, an image or a folder, and whether it still runs."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

_PATTERN = re.compile(r"(\d+)-(\d+)-(\d+)-([0-9a-f]{8})")


@dataclass(frozen=True, slots=True)
class Owner:
    """Identifies a process among all processes that this machine has ever run."""

    pid: int
    started: int
    """Clock ticks after boot; distinguishes processes that had the same id."""
    pid_namespace: int
    """Inode of the namespace in which the process id is valid."""
    boot: str
    """First 8 digits of the boot's id."""

    def __str__(self) -> str:
        return f"{self.pid}-{self.started}-{self.pid_namespace}-{self.boot}"

    @classmethod
    def here(cls) -> Owner:
        """Return the owner that is this process."""
        pid = os.getpid()
        return cls(pid, _start_of(pid) or 0, _pid_namespace(), _boot())

    @classmethod
    def parse(cls, text: str) -> Owner | None:
        """Read the form that `str` returns; None if the text has another form."""
        match = _PATTERN.fullmatch(text)
        return cls(int(match[1]), int(match[2]), int(match[3]), match[4]) if match else None

    def is_dead(self) -> bool:
        """Return whether it has certainly ended. A process of another pid namespace cannot be checked: False."""
        if self.boot != _boot():
            return True
        return self.pid_namespace == _pid_namespace() and _start_of(self.pid) != self.started


def _start_of(pid: int) -> int | None:
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    return None if state in "ZX" else int(fields[18])


def _pid_namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]
