"""Starts Ray many times as the tests do, two at a time: `python -m tests.support.ray_starts 200`.

Each start is a process of its own that calls `ray.init` with forked workers and asks eight of them. One that takes
longer than the limit counts as a hang, and its process ends with the stacks of all threads. Exit status 1: not all
have answered.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

LIMIT_S = 240
START = f"""
import faulthandler, os
faulthandler.dump_traceback_later({LIMIT_S}, exit=True)
os.environ["RAY_AUTH_MODE"] = "disabled"
os.environ["RAY_worker_niceness"] = "0"
import ray
from tests.support.forks import forked_workers
with forked_workers():
    ray.init("local", num_cpus=8, include_dashboard=False, log_to_driver=False)

@ray.remote
class Worker:
    def held(self):
        return ray.get(ray.put(os.getpid()))

workers = [Worker.remote() for _ in range(8)]
assert len(set(ray.get([worker.held.remote() for worker in workers]))) == 8
ray.shutdown()
"""


def start(_: int) -> str:
    """Return how a start ended; what a failed one printed goes to stderr."""
    try:
        command = [sys.executable, "-c", START]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S + 30)
    except subprocess.TimeoutExpired:
        return "hung"
    if done.returncode == 0:
        return "answered"
    sys.stderr.write(done.stderr)
    return "hung" if "Timeout (" in done.stderr else "failed"


def main(n_starts: int) -> int:
    ended: Counter[str] = Counter()
    begun = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        for how in pool.map(start, range(n_starts)):
            ended[how] += 1
            if ended.total() % 10 == 0 or ended.total() == n_starts:
                counts = ", ".join(f"{n} {name}" for name, n in ended.items())
                print(f"{ended.total()} of {n_starts} starts: {counts}; {time.monotonic() - begun:.0f} s", flush=True)
    return int(ended["answered"] < n_starts)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
