"""Counting processes: what a sandbox has started and what it leaves."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable
from contextlib import suppress
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


def forked(work: Callable[[], object]) -> int:
    """Do some work in a process of its own, which ends with status 0 iff it succeeded; return the process id."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        work()
        status = 0
    finally:
        if status:
            traceback.print_exc()
        os._exit(status)


def wait_for(*children: int) -> None:
    """Wait until they have ended, all with success."""
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * len(children)


def kill(pids: set[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):  # it has gone with another one
            os.kill(pid, signal.SIGKILL)


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
