"""Clocks for benchmarks: processor time of a process tree, of a thread and of garbage collection; and memory.

Linux only. Python's own counters do not include running children, and the processes of a sandbox live as long as the
sandbox. So the processor time of a tree is the sum of

- this process (`time.process_time`, all threads, without the time of reading /proc),
- its children that have ended (`getrusage`),
- the run time of each living descendant, all threads, from `/proc/<pid>/task/*/schedstat` (nanoseconds),
- the time of the children of living descendants, which the sandbox reports per job (`JobReport.cpu_s`, from `wait4`).

`Metered` collects the last part. This needs no cgroup and no privileges.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from codea1_env.sandbox.interface import Guarantee, Job, JobReport, Sandbox

_PROC = Path("/proc")


@dataclass(frozen=True)
class Spread:
    """One figure over several rounds."""

    min: float
    median: float
    max: float

    @classmethod
    def of(cls, figures: Sequence[float]) -> Spread:
        """Return the spread of at least one figure."""
        return cls(min(figures), statistics.median(figures), max(figures))

    def cells(self, digits: int = 2) -> list[str]:
        """Return the three figures as text."""
        return [f"{figure:,.{digits}f}" for figure in (self.min, self.median, self.max)]

    def to_json(self) -> dict[str, float]:
        """Return the three figures by name."""
        return asdict(self)


def printed_by(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the JSON that a Python process of its own prints in its last line; exit with its error if it fails."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)} failed:\n{done.stderr[-4000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def option_parser(doc: str | None, *, json: str = "") -> argparse.ArgumentParser:
    """Return a parser with a benchmark's docstring; `json` is the help of its option `--json`, if it has one."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if json:
        parser.add_argument("--json", action="store_true", help=json)
    return parser


class Metered:
    """A sandbox that sums the processor time of its jobs."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.name, self.close = sandbox.name, sandbox.close
        self.jobs_cpu_s = 0.0
        self.n_jobs = 0

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the wrapped sandbox."""
        return self._sandbox.guarantee

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        """Run all jobs."""
        reports = self._sandbox.run(jobs)
        self.n_jobs += len(jobs)
        self.jobs_cpu_s += sum(report.cpu_s for report in reports)
        return reports


@dataclass(frozen=True)
class TreeTime:
    """Processor seconds so far."""

    own_s: float
    """This process, all threads."""
    ended_s: float
    """Children that have ended."""
    living_s: float
    """Living descendants, without their children that have ended."""

    def since(self, earlier: TreeTime) -> TreeTime:
        """Return the difference to an earlier time; no process of it may have ended since."""
        return TreeTime(self.own_s - earlier.own_s, self.ended_s - earlier.ended_s, self.living_s - earlier.living_s)

    @property
    def total_s(self) -> float:
        """The sum, without the children of living descendants."""
        return self.own_s + self.ended_s + self.living_s


class TreeClock:
    """Reads the processor time of this process and its descendants."""

    def __init__(self) -> None:
        self._cost_s = 0.0  # of reading

    def now(self) -> TreeTime:
        """Read all clocks."""
        started = time.thread_time()
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        living = sum(_run_time_s(pid) for pid in descendants())
        self._cost_s += time.thread_time() - started
        return TreeTime(time.process_time() - self._cost_s, usage.ru_utime + usage.ru_stime, living)


class Pauses:
    """Measures the processor seconds of garbage collection in this process since its construction."""

    def __init__(self) -> None:
        self.total_s = 0.0
        self._started = 0.0
        gc.callbacks.append(self._on_collection)

    def _on_collection(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._started = time.thread_time()
        else:
            self.total_s += time.thread_time() - self._started


def threads_time_s(name: str) -> float:
    """Return the processor seconds of the living threads of this process that have a name."""
    return sum(
        time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
        for thread in threading.enumerate()
        if thread.name == name and thread.ident is not None
    )


def descendants() -> list[int]:
    """Return the process ids of all living descendants of this process."""
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, waiting = [], [os.getpid()]
    while waiting:
        next_ones = children.get(waiting.pop(), [])
        found += next_ones
        waiting += next_ones
    return found


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/<pid>/stat after the name: state, parent, ..."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:  # the process has ended
        return []


def _run_time_s(pid: int) -> float:
    try:
        tasks = list((_PROC / str(pid) / "task").iterdir())
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
    except OSError:
        return 0.0


@dataclass(frozen=True)
class Memory:
    """Memory of some processes together, in MB."""

    proportional: float
    """PSS: shared pages are divided equally among their owners."""
    unique: float
    """USS: the memory that would be free without these processes."""


def memory_of(pids: Iterable[int]) -> Memory | None:
    """Return the memory of processes; None if the kernel does not allow it."""
    sizes: dict[str, int] = {}
    try:
        for pid in pids:
            for line in (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()[1:]:
                key, value = line.split(":")
                sizes[key] = sizes.get(key, 0) + int(value.split()[0])
    except OSError:
        return None
    unique = sizes.get("Private_Clean", 0) + sizes.get("Private_Dirty", 0)
    return Memory(sizes.get("Pss", 0) / 1024, unique / 1024)


def machine() -> dict[str, Any]:
    """Return the facts that a reader needs to compare figures: cores, load, kernel, Python."""
    uname = os.uname()
    return {
        "cores": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 1),
        "system": f"{uname.sysname} {uname.release} {uname.machine}",
        "python": ".".join(map(str, os.sys.version_info[:3])),  # type: ignore[attr-defined]
    }
