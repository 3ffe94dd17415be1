"""Counting processes: what a sandbox has started and what it leaves."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.waiting import wait_until


def descendants(root: int | None = None) -> set[int]:
    """Return a process (by default this one) and all that it has started, directly or not."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has just ended
            continue
    found = {root or os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def command_of(pid: int) -> str:
    """Return the command of a process; nothing of one that has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def left_over(before: set[int]) -> set[int]:
    """Return processes of ours that were not there before, after time to end."""
    wait_until(lambda: not descendants() - before, 20.0)  # a crowded machine may take long to end a process
    return descendants() - before
