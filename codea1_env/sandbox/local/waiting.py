"""How long a process was ready to run but got no processor. Distinguishes a sleeping process from a busy machine."""

from __future__ import annotations

from pathlib import Path

_PROC = Path("/proc")


def seconds_waited(ancestor: int, pid: int) -> float | None:
    """Return the seconds that a process has waited for a processor; None if unknown.

    The time of the thread that waited longest counts. A thread may wait for other threads of the same process, but only
    while these run, and their processor time is limited. The sum over all threads would grow with their number.

    Args:
        ancestor: process id of a zygote or its launcher, in this process's pid namespace.
        pid: process id in the zygote's pid namespace.
    """
    outer = _outer_pid(ancestor, pid)
    if outer is None:
        return None
    try:
        threads = list((_PROC / str(outer) / "task").iterdir())
        return max(int((thread / "schedstat").read_text().split()[1]) for thread in threads) / 1e9
    except (OSError, ValueError, IndexError):  # it has just ended, or the kernel does not report this
        return None


def _outer_pid(ancestor: int, pid: int) -> int | None:
    try:
        entries = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]
    except OSError:
        return None
    parents, inner = {}, {}
    for entry in entries:
        try:
            lines = (_PROC / str(entry) / "status").read_text().splitlines()
        except OSError:  # it has just ended
            lines = []
        fields = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        parents[entry] = int(fields.get("PPid", "0"))
        inner[entry] = int(fields.get("NSpid", "0").split()[-1])
    for entry in entries:
        if inner[entry] == pid:
            forebear = entry
            while forebear in parents and forebear != ancestor:
                forebear = parents[forebear]
            if forebear == ancestor:
                return entry
    return None
