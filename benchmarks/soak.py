"""Runs many mixed jobs, some hostile, in one sandbox, whose resources must not grow.

Run as `python benchmarks/soak.py --jobs N`.

Prints one line per tenth of the jobs: processes, open files, memory (of this process, and of its descendants) and files
in the temporary folder. Then prints whether they are flat. The exit status is 1 if they are not, or if an answer was
wrong.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from measuring import descendants

from codea1_env.facts.verdicts import OutcomeKind
from codea1_env.sandbox import Call, Harness, Job, Limits, Place
from codea1_env.sandbox.local import EACH_KIND, LocalSandbox

HOSTILE_ONE_IN = 50
_BATCH = 250
_SLACK_MB = 16.0
_BUSY = "def f(x):\n    for _ in range(10**5 * x): pass"
_QUICK = Limits(cpu_s=0.1, wall_s=1.0, memory_mb=128, max_restarts=1)

_HONEST = (
    ("def f(x): return x * 2", "f({n})", lambda n: str(2 * n)),
    ("def f(x): return [i for i in range(x % 9)]", "f({n})", lambda n: str([*range(n % 9)]).replace(" ", "")),
    ("import math\ndef f(x): return math.gcd(x, 12)", "f({n})", lambda n: str(__import__("math").gcd(n, 12))),
    ("def f(x): return sorted(str(x))[0]", "f({n})", lambda n: f'"{min(str(n))}"'),
)
_HOSTILE = (
    "def f(x):\n    while True: pass",
    "def f(x): return 'x' * 10**11",
    "import os\ndef f(x): os.abort()",
    "import os\ndef f(x): os._exit(0)",
    "import os\nfrom contextlib import suppress\n"
    "def f(x):\n    for fd in range(64):\n        with suppress(OSError): os.write(fd, b'V' * 5000)",
    "import threading, time\ndef f(x):\n    while True: threading.Thread(target=time.sleep, args=(9,)).start()",
    "import os\ndef f(x):\n    while True: os.fork()",
    "def f(x):\n    open('/tmp/mark', 'w').write('x')",
    "raise SystemExit(0)",
    "def f(x): return f(x)",
)


@dataclass(frozen=True)
class Reading:
    """The resources in use at one moment."""

    n_jobs: int
    n_wrong: int
    n_processes: int
    n_files: int
    own_mb: float
    started_mb: float
    """Private memory of all running descendants."""
    n_temporary: int

    def is_flat_since(self, earlier: Reading) -> bool:
        """Whether no resource has grown."""
        return (
            self.n_processes <= earlier.n_processes
            and self.n_files <= earlier.n_files
            and self.n_temporary <= earlier.n_temporary
            and self.own_mb <= earlier.own_mb + _SLACK_MB
            and self.started_mb <= earlier.started_mb + _SLACK_MB
        )


def soak(n_jobs: int, seed: int = 0, n_readings: int = 10) -> Iterator[Reading]:
    """Run jobs and yield readings, each taken while no job runs."""
    draw, n_done, n_wrong = random.Random(seed), 0, 0
    with LocalSandbox() as sandbox:
        for kind in EACH_KIND:  # rare kinds would start later and count as growth
            sandbox.run([Job(f"{_BUSY}  {kind}", "f", (Call("f(5)"),))] * 40)
        for part in range(1, n_readings + 1):
            while n_done < n_jobs * part // n_readings:
                jobs, right = _batch(draw, min(_BATCH, n_jobs * part // n_readings - n_done))
                reports = sandbox.run(jobs)
                n_done += len(jobs)
                for report, value in zip(reports, right, strict=True):
                    outcome = report.outcomes[0]
                    n_wrong += outcome.kind is OutcomeKind.INTERNAL_ERROR
                    n_wrong += value is not None and outcome.value != value.encode()
            yield _reading(n_done, n_wrong)


def _batch(draw: random.Random, size: int) -> tuple[list[Job], list[str | None]]:
    """Return jobs, and the value that each must return; None for hostile jobs."""
    jobs: list[Job] = []
    right: list[str | None] = []
    for _ in range(size):
        number = draw.randrange(10**6)
        if draw.randrange(HOSTILE_ONE_IN) == 0:
            jobs.append(Job(draw.choice(_HOSTILE), "f", (Call("f(1)"),), limits=_QUICK))
            right.append(None)
            continue
        program, call, answer = draw.choice(_HONEST)
        place = draw.choice((Place.PROGRAM, Place.PROGRAM, Place.PROGRAM, Place.HARNESS))
        jobs.append(Job(program, "f", (Call(call.format(n=number), place=place),), harness=Harness()))
        right.append(answer(number))
    return jobs, right


def _reading(n_jobs: int, n_wrong: int) -> Reading:
    time.sleep(0.3)  # until the last killed processes have ended
    started = descendants()
    return Reading(
        n_jobs,
        n_wrong,
        len(started),
        len(os.listdir("/proc/self/fd")),
        _private_mb(os.getpid()),
        sum(map(_private_mb, started)),
        sum(map(_is_ours, os.scandir(tempfile.gettempdir()))),
    )


def _is_ours(entry: os.DirEntry[str]) -> bool:
    """Whether a file is that of a hostile program, or of a user as which programs run."""
    try:
        return entry.name == "mark" or entry.stat(follow_symlinks=False).st_uid >= 300_000
    except OSError:  # another process removed it
        return False


def _private_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon")), 0.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print("     jobs   wrong  processes  files  own MB  started MB  temporary  seconds")
    started, readings = time.perf_counter(), []
    for reading in soak(options.jobs, options.seed):
        readings.append(reading)
        print(
            f"{reading.n_jobs:9d} {reading.n_wrong:7d} {reading.n_processes:10d} {reading.n_files:6d}"
            f" {reading.own_mb:7.1f} {reading.started_mb:11.1f} {reading.n_temporary:10d}"
            f" {time.perf_counter() - started:8.0f}",
            flush=True,
        )
    is_good = readings[-1].is_flat_since(readings[1]) and readings[-1].n_wrong == 0
    print("flat, and every answer right" if is_good else "NOT GOOD")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
