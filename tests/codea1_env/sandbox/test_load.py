"""What a program gets must not depend on its neighbours."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from codea1_env.sandbox.interface import Call, Harness, Job, Limits, Place
from codea1_env.sandbox.local import LocalSandbox

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="load is told from sleep on Linux")]

LIMITS = Limits(cpu_s=0.4, wall_s=2.0, memory_mb=128)
END = "end = time.process_time() + x\n    while time.process_time() < end: pass\n"
SPIN = f"import time\ndef f(x):\n    {END}    return x\n"
SLEEP = "import time\ndef f(x):\n    time.sleep(x)\n    return x\n"
MEMORY = "def f(x): return len(bytearray(x << 20)) >> 20\n"
DEATH = "import os\ndef f(x): return os.abort() if x else os._exit(3)\n"
HARNESS = Harness("def check(f): return f(0.05)\n")
THROUGH_HARNESS = (Call("check(f)", place=Place.HARNESS), Call("f(9) + f(0.01)", place=Place.HARNESS))


def calls(*arguments: float) -> tuple[Call, ...]:
    return tuple(Call(f"f({argument})") for argument in arguments)


CASES: dict[Job, list[str]] = {
    Job("def f(x): return x\n", "f", calls(1, 2, 3)): ["valuenull", "value1", "value2", "value3"],
    Job(SPIN, "f", calls(0.01, 0.15, 9, 0.05)): ["valuenull", "value0.01", "value0.15", "time_limit", "value0.05"],
    Job(SPIN, "f", calls(*[0.05] * 8)): ["valuenull", *["value0.05"] * 8],
    Job(SLEEP, "f", calls(0.2, 60, 0.1)): ["valuenull", "value0.2", "time_limit", "value0.1"],
    Job(MEMORY, "f", calls(10, 80, 200, 20)): ["valuenull", "value10", "value80", "memory_limit", "value20"],
    Job(DEATH, "f", calls(0, 1)): ["valuenull", "exited", "crashed"],
    Job("while True: pass\n", "f", calls(1)): ["time_limit", "not_run"],
    Job("def f(x): return f(x)\n", "f", calls(1)): ["valuenull", "error"],
    Job("def f(:\n", "f", calls(1)): ["error", "not_run"],
    Job(SPIN, "f", THROUGH_HARNESS, harness=HARNESS): ["valuenull", "value0.05", "time_limit"],
}
JOBS = [replace(job, limits=LIMITS) for job in CASES]


@pytest.fixture
def hogs() -> Iterator[None]:
    started = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(4)]
    yield
    for hog in started:
        hog.kill()
        hog.wait()


@pytest.mark.parametrize("time", range(2))
@pytest.mark.usefixtures("hogs")
def test_under_load_each_program_gets_what_it_deserves(time: int) -> None:
    with LocalSandbox(2) as sandbox:
        outcomes = [(report.load, *report.outcomes) for report in sandbox.run(JOBS * 2)]
    found = [[each.kind.value + (each.value or b"").decode() for each in of_job] for of_job in outcomes]
    assert found == list(CASES.values()) * 2
