"""Nothing gathers over thousands of jobs, and nothing survives a parent that is killed at any moment."""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.processes import descendants, left_over
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

N_JOBS, N_KILLS = 5_000, 15
PR_SET_CHILD_SUBREAPER = 36
BUSY = """
import sys, threading, types
package = types.ModuleType("codea1_env")
package.__path__ = [sys.argv[1] + "/codea1_env"]
sys.modules["codea1_env"] = package  # only what starts processes is of interest
from codea1_env.sandbox.interface import Call, Harness, Job, Limits, Place
from codea1_env.sandbox.local import LocalSandbox
limits = Limits(cpu_s=0.3, wall_s=5.0)
programs = ["def f(x): return x", "def f(x):\\n    while True: pass", "import time\\ndef f(x): time.sleep(60)",
            "import os\\ndef f(x): os.abort()", "import numpy\\ndef f(x): return numpy.arange(3)"]
jobs = [Job(program, "f", (Call("f(1)"), Call("f(2)", place=Place.HARNESS)), limits=limits) for program in programs]
sandbox = LocalSandbox(2)
for _ in range(2):
    threading.Thread(target=lambda: [sandbox.run(jobs) for _ in range(99)], daemon=True).start()
print("busy", flush=True)
threading.Event().wait()
"""


@pytest.fixture
def as_reaper() -> Iterator[None]:
    """Whatever loses its parent becomes a child of this process, so that nothing can be overlooked."""
    prctl = ctypes.CDLL(None).prctl
    assert prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    yield
    prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@pytest.mark.usefixtures("as_reaper")
def test_a_killed_parent_leaves_nothing_whenever_it_is_killed() -> None:
    draw, before, n_seen = random.Random(0), descendants(), 0
    for _ in range(N_KILLS):
        user = subprocess.Popen([sys.executable, "-c", BUSY, str(ROOT)], stdout=subprocess.PIPE, text=True)
        assert user.stdout is not None
        assert user.stdout.readline() == "busy\n"
        time.sleep(draw.random() * 0.8)
        n_seen = max(n_seen, len(descendants() - before))
        user.kill()
        user.wait()
        user.stdout.close()
        wait_until(lambda: not reaped(descendants() - before))
        assert {pid: told(pid) for pid in descendants() - before} == {}
    assert n_seen > 3  # the user, zygotes and jobs have been there


def told(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text() + Path(f"/proc/{pid}/cmdline").read_text()
    return "gone"


def reaped(pids: set[int]) -> set[int]:
    """Wait for those of them that have ended; return what was given."""
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
    return pids


def test_thousands_of_mixed_jobs_leave_nothing_and_are_all_answered_right(monkeypatch: pytest.MonkeyPatch) -> None:
    before = descendants()
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    readings = list(runpy.run_path(str(ROOT / "benchmarks/soak.py"))["soak"](N_JOBS))
    assert [reading.n_wrong for reading in readings] == [0] * len(readings)
    assert readings[-1].n_jobs == N_JOBS
    assert readings[-1].is_flat_since(readings[1]), readings
    assert {pid: told(pid) for pid in left_over(before)} == {}
    assert signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL  # and the parent's own settings are as they were
