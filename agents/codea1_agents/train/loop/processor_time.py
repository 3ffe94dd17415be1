"""Processor time of this process and of all that it has started, the sandbox's programs included."""

from __future__ import annotations

import os
import time
from pathlib import Path

_PROC = Path("/proc")
_PARENT, _FIRST_TIME = 1, 11  # positions in /proc/PID/stat behind the name: parent; then utime stime cutime cstime


def processor_seconds() -> float:
    """Return the seconds so far; where there is no /proc, those of this process alone.

    What a process has done is counted until it is waited for, and then as its parent's: only orphans are lost.
    """
    if not _PROC.is_dir():
        return time.process_time()
    spent: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended meanwhile
                continue
            spent[int(entry.name)] = sum(map(int, fields[_FIRST_TIME : _FIRST_TIME + 4]))
            children.setdefault(int(fields[_PARENT]), []).append(int(entry.name))
    return sum(spent.get(pid, 0) for pid in _descendants(os.getpid(), children)) / os.sysconf("SC_CLK_TCK")


def _descendants(pid: int, children: dict[int, list[int]]) -> list[int]:
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found
