"""Processor time of this process and of all its descendants, including the programs of the sandbox."""

from __future__ import annotations

import os
import time
from pathlib import Path

_PROC = Path("/proc")
_PARENT, _FIRST_TIME = 1, 11  # positions in /proc/PID/stat after the name: parent; utime stime cutime cstime


def processor_seconds() -> float:
    """Return the seconds so far; without /proc, those of this process alone.

    The time of a process that has been waited for is in its parent's. Only the time of orphans is missing.
    """
    if not _PROC.is_dir():
        return time.process_time()
    spent: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # the process has ended
                continue
            spent[int(entry.name)] = sum(map(int, fields[_FIRST_TIME : _FIRST_TIME + 4]))
            children.setdefault(int(fields[_PARENT]), []).append(int(entry.name))
    family = [os.getpid()]
    for pid in family:
        family += children.get(pid, [])
    return sum(spent.get(pid, 0) for pid in family) / os.sysconf("SC_CLK_TCK")
