"""Starting, ending, dying and forking: nothing hangs, nothing is left, nothing is lost."""

from __future__ import annotations

import _thread
import contextlib
import errno
import gc
import itertools
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import codea1_env.sandbox.local.scheduler
import codea1_env.sandbox.local.worker
from codea1_env.errors import SandboxError
from codea1_env.facts.verdicts import OutcomeKind
from codea1_env.sandbox.interface import SLEPT, Call, Job, JobReport, Limits
from codea1_env.sandbox.local import TIERS, LocalSandbox
from codea1_env.sandbox.local.scheduler import Batch, Scheduler
from codea1_env.sandbox.local.worker import Setup, Upkeep
from tests.support.processes import descendants, forked, kill, left_over, wait_for
from tests.support.sandboxes import DOUBLE, answers, busy_user
from tests.support.waiting import wait_until

NAP = Job("import time\ndef f(x):\n    time.sleep(x)\n    return x\n", "f", (Call("f(0.4)"),))
LONG = Job("import time\ndef f(): time.sleep(60)\n", "f", (Call("f()"),))
SPIN = Job("def f():\n    while True: pass\n", "f", (Call("f()"),), limits=Limits(cpu_s=30))
pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"), pytest.mark.slow]


@pytest.fixture
def sandbox() -> Iterator[LocalSandbox]:
    with LocalSandbox(1) as sandbox:
        yield sandbox


@pytest.fixture
def nothing_is_left() -> Iterator[None]:
    before = descendants()
    yield
    assert left_over(before) == set()


@contextlib.contextmanager
def running(sandbox: LocalSandbox, jobs: list[Job]) -> Iterator[tuple[Future[Any], set[int]]]:
    """Within it, jobs run in the background; yields their reports to come and the processes of before."""
    assert answers(sandbox)
    idle = descendants()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(sandbox.run, jobs)
        assert wait_until(lambda: descendants() - idle)
        yield waiting, idle


def values(reports: Sequence[JobReport]) -> list[bytes | None]:
    return [report.outcomes[0].value for report in reports]


def test_close_ends_everything_twice_and_a_later_run_starts_afresh() -> None:
    before, files = descendants(), len(os.listdir("/proc/self/fd"))
    sandbox = LocalSandbox(2)
    assert answers(sandbox)
    sandbox.close()
    sandbox.close()
    assert left_over(before) == set()
    assert len(os.listdir("/proc/self/fd")) == files
    assert answers(sandbox)
    sandbox.close()
    assert left_over(before) == set()


@pytest.mark.usefixtures("nothing_is_left")
def test_a_forgotten_sandbox_ends_with_its_last_reference() -> None:
    sandbox = LocalSandbox(1)
    assert answers(sandbox)
    del sandbox
    gc.collect()


@pytest.mark.usefixtures("nothing_is_left")
def test_closing_under_a_running_job_is_an_error_for_who_waits() -> None:
    sandbox = LocalSandbox(1)
    with running(sandbox, [LONG]) as (waiting, _):
        sandbox.close()
        with pytest.raises(SandboxError, match="closed"):
            waiting.result(timeout=0.9)


def test_the_job_that_has_been_running_for_longest_is_named_by_its_problem() -> None:
    named = [DOUBLE, *(replace(LONG, problem_id=name) for name in ("", "a/first", "a/second"))]
    with LocalSandbox(3) as sandbox:
        assert sandbox.oldest() is None
        begun = time.monotonic()
        with running(sandbox, named):
            name, since = wait_until(sandbox.oldest) or ("", 0.0)
            sandbox.close()
        assert (name, sandbox.oldest()) == ("a/first", None)
        assert begun <= since <= time.monotonic()


def test_an_interrupted_run_ends_its_jobs(sandbox: LocalSandbox) -> None:
    assert answers(sandbox)
    before = descendants()
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        sandbox.run([LONG, SPIN])
    timer.join()
    assert left_over(before) == set()
    assert answers(sandbox)


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


KILLS = [f"os.kill(os.getpid(), signal.{each})" for each in ("SIGTERM", "SIGKILL")]


@pytest.mark.parametrize("ending", ["", "raise ValueError", "sys.exit(3)", "os._exit(0)", "os.abort()", *KILLS])
def test_however_a_user_ends_nothing_is_left(ending: str) -> None:
    command = [sys.executable, "-c", busy_user("codea1_env.sandbox.local.LocalSandbox", ending)]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    user = subprocess.Popen(command, **streams, text=True)
    assert user.stdin is not None
    assert user.stdout is not None
    assert user.stdout.readline() == "ready\n"
    idle = descendants(user.pid)
    user.stdin.write("\n")
    user.stdin.flush()
    assert wait_until(lambda: descendants(user.pid) - idle)
    started = descendants(user.pid) - {user.pid}
    assert len(started) >= 2  # a zygote and a job at least
    user.communicate("\n", timeout=30)
    assert wait_until(lambda: not any(map(runs, started)))


def test_a_worker_killed_idle_or_under_a_job_is_replaced_and_the_job_run_again(sandbox: LocalSandbox) -> None:
    before = descendants()
    assert answers(sandbox)
    kill(descendants() - before)
    with running(sandbox, [NAP, DOUBLE, NAP]) as (waiting, idle):
        kill(idle - before)
        assert values(waiting.result(timeout=20)) == [b"0.4", b"42", b"0.4"]
    sandbox.close()
    assert left_over(before) == set()


def test_a_job_whose_worker_dies_twice_is_an_internal_error(sandbox: LocalSandbox) -> None:
    before = descendants()
    assert answers(sandbox)
    n_workers = len(descendants() - before)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(sandbox.run, [LONG])
        while not waiting.done():
            first = descendants() - before
            time.sleep(0.1)
            if len(first) > n_workers and first == descendants() - before:  # workers that start fork for a moment too
                kill({min(first)})  # what we started ourselves; the rest goes with it
        (report,) = waiting.result(timeout=10)
    assert report.load.kind is report.outcomes[0].kind is OutcomeKind.INTERNAL_ERROR
    assert answers(sandbox)


@contextlib.contextmanager
def scheduler_of(upkeep: Upkeep) -> Iterator[Callable[[list[Job]], set[bytes | None]]]:
    """A scheduler without a sandbox around it: give it jobs, get their values."""
    scheduler, setup = Scheduler(1, TIERS, upkeep=upkeep), Setup()

    def run(jobs: list[Job]) -> set[bytes | None]:
        batch = Batch(jobs, lambda job: setup)
        scheduler.submit(batch)
        assert batch.done.wait(60)
        assert batch.error == ""
        assert None not in batch.reports
        return {report.outcomes[0].value for report in batch.reports if report is not None}

    with contextlib.closing(scheduler):
        yield run


def test_a_worker_that_has_served_its_time_is_replaced() -> None:
    before = descendants()
    with scheduler_of(Upkeep(max_forks=5)) as run:
        assert run([DOUBLE]) == {b"42"}
        first = descendants() - before
        assert run([DOUBLE] * 23) == {b"42"}
        assert wait_until(lambda: not first & descendants())
    assert left_over(before) == set()


@pytest.mark.parametrize("n_kills", [1, 2])
def test_a_job_killed_from_outside_is_run_again_once(sandbox: LocalSandbox, n_kills: int) -> None:
    if sandbox.tier == "rlimits":
        pytest.skip("a job might have killed itself here")
    with running(sandbox, [NAP]) as (waiting, idle):
        for _ in range(n_kills):
            (job,) = wait_until(lambda: descendants() - idle)
            os.kill(job, signal.SIGKILL)
            wait_until(lambda job=job: job not in descendants())
        outcome = waiting.result(timeout=10)[0].outcomes[0]
    assert outcome.kind is (OutcomeKind.VALUE if n_kills == 1 else OutcomeKind.INTERNAL_ERROR)


def test_a_sealed_program_cannot_kill_itself_so_that_it_looks_like_our_failure(sandbox: LocalSandbox) -> None:
    assert answers(sandbox)
    if sandbox.tier == "rlimits":
        pytest.skip("it can here, and is blamed for it")
    program = "import os, signal, threading\ndef f(how): return eval(how)\n"
    attempts = ("os.kill(os.getpid(), 9)", "signal.raise_signal(9)", "signal.pthread_kill(threading.get_ident(), 9)")
    report = sandbox.run([Job(program, "f", tuple(Call(f"f({how!r})") for how in attempts))])[0]
    assert [outcome.error_type for outcome in report.outcomes] == ["PermissionError"] * 3


def test_a_worker_that_hangs_is_replaced() -> None:
    before = descendants()
    with scheduler_of(Upkeep(answer_timeout_s=0.3)) as run:
        assert run([DOUBLE]) == {b"42"}
        workers = descendants() - before
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        assert run([DOUBLE]) == {b"42"}
        assert not workers & descendants()
    assert left_over(before) == set()


@pytest.mark.parametrize(
    ("waited_s", "kind", "n_asked"),
    [
        (1.0, OutcomeKind.INTERNAL_ERROR, 4),  # after the wall clock, and once more after what it has waited
        (0.0, OutcomeKind.TIME_LIMIT, 1),
        (None, OutcomeKind.TIME_LIMIT, 2),
    ],
)
def test_a_starved_job_gets_more_time_then_another_run_and_is_never_blamed(
    sandbox: LocalSandbox, monkeypatch: pytest.MonkeyPatch, waited_s: float | None, kind: OutcomeKind, n_asked: int
) -> None:
    asked: list[int] = []

    def seconds_waited(ancestor: int, pid: int) -> float | None:
        asked.append(pid)
        return None if waited_s is None else waited_s * len(asked)

    monkeypatch.setattr(codea1_env.sandbox.local.scheduler, "seconds_waited", seconds_waited)
    job = replace(LONG, limits=Limits(wall_s=0.1))  # a tenth of what a starved process gets
    assert sandbox.run([job])[0].outcomes[0].kind is kind
    assert len(asked) == n_asked


def test_a_sleeper_is_told_from_a_starved_process(sandbox: LocalSandbox) -> None:
    started = time.monotonic()
    assert sandbox.run([replace(LONG, limits=Limits(wall_s=0.3))])[0].outcomes[0].kind is OutcomeKind.TIME_LIMIT
    assert time.monotonic() - started < 1.5  # at once, without a second try


@pytest.mark.parametrize("n_refused", [2, None])
def test_jobs_wait_for_files_and_it_is_said_if_none_can_begin(sandbox, monkeypatch, n_refused) -> None:
    fork, n_asked = codea1_env.sandbox.local.worker.Worker.fork, itertools.count()

    def refused(self: Any, *arguments: Any) -> Any:
        if n_refused is None or 1 <= next(n_asked) <= n_refused:
            raise OSError(errno.EMFILE, "too many open files")
        return fork(self, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(codea1_env.sandbox.local.worker.Worker, "fork", refused)
        if n_refused is None:
            with pytest.raises(SandboxError, match="too many open files"):
                sandbox.run([DOUBLE])
        else:
            assert values(sandbox.run([NAP, DOUBLE, DOUBLE])) == [b"0.4", b"42", b"42"]
            assert next(n_asked) == 5
    assert answers(sandbox)


def test_an_interpreter_that_does_not_start_or_ends_at_once_is_said(sandbox, monkeypatch, bootstrap) -> None:
    bootstrap("raise SystemExit")
    with pytest.raises(SandboxError, match="do not start"):
        sandbox.run([DOUBLE])
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(SandboxError, match=r"do not start: .*/nowhere/python"):
        sandbox.run([DOUBLE])


def test_zygotes_killed_while_they_start_end_nothing(bootstrap: Callable[[str], None], tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    bootstrap(f"""
        import os
        with open({str(starts)!r}, "a") as file:
            file.write("x")
        if os.path.getsize({str(starts)!r}) <= 4:
            os.kill(os.getpid(), 9)
    """)
    with LocalSandbox(1, tiers=("rlimits",)) as sandbox:
        assert answers(sandbox)
    assert starts.stat().st_size == 5


def test_threads_share_the_workers_and_each_gets_its_own_reports(sandbox: LocalSandbox) -> None:
    def work(n: int) -> list[bytes | None]:
        return values(sandbox.run([Job(f"def f(x): return [x, {n}]\n", "f", (Call(f"f({k})"),)) for k in range(10)]))

    with ThreadPoolExecutor(8) as pool:
        for n, found in enumerate(pool.map(work, range(16))):
            assert found == [f"[{k},{n}]".encode() for k in range(10)]


def test_a_small_batch_does_not_wait_for_a_large_one(sandbox: LocalSandbox) -> None:
    busy = Job("def f():\n    for _ in range(10**6): pass\n", "f", (Call("f()"),))
    with running(sandbox, [busy] * 60) as (large, _):
        assert answers(sandbox)
        assert not large.done()
        large.result(timeout=30)


@pytest.mark.usefixtures("nothing_is_left")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # forking with threads is what is tested
def test_after_a_fork_both_processes_have_workers_of_their_own(sandbox: LocalSandbox) -> None:
    def use() -> None:
        assert answers(sandbox)
        sandbox.close()

    assert answers(sandbox)
    child = forked(use)
    assert answers(sandbox)
    wait_for(child)
    assert answers(sandbox)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_that_never_uses_the_sandbox_does_not_disturb_it(sandbox: LocalSandbox) -> None:
    with running(sandbox, [NAP] * 4) as (waiting, _):
        for _ in range(5):
            wait_for(forked(lambda: None))
        assert values(waiting.result(timeout=20)) == [b"0.4"] * 4


def test_a_pickled_sandbox_is_another_one_with_the_same_settings() -> None:
    with LocalSandbox(1, tiers=("seccomp",), packages=()) as sandbox:
        again = pickle.loads(pickle.dumps(sandbox))
        assert answers(again)
        assert (again.tier, again is sandbox) == ("seccomp", False)
        again.close()


DOZING = """
import threading, time
def doze():
    while True:
        time.sleep(0.002)
def f(x):
    threading.stack_size(65536)
    for _ in range(60):
        threading.Thread(target=doze, daemon=True).start()
    time.sleep(600)
"""


def test_threads_that_wake_each_other_up_pass_for_no_busy_machine(sandbox: LocalSandbox) -> None:
    job = Job(DOZING, "f", (Call("f(1)"),), limits=Limits(cpu_s=10, wall_s=1.0))
    outcome = sandbox.run([job])[0].outcomes[0]
    assert (outcome.kind, outcome.message) == (OutcomeKind.TIME_LIMIT, "slept more than 1 s")


def test_sleep_adds_up_over_the_calls_of_a_process_and_is_named(sandbox: LocalSandbox) -> None:
    program = "import time\ndef f(x): time.sleep(0.3); return x"
    calls = tuple(Call(f"f({number})") for number in range(8))
    (report,) = sandbox.run([Job(program, "f", calls, limits=Limits(wall_s=0.8, max_restarts=0))])
    kinds = [outcome.kind for outcome in report.outcomes]
    assert kinds[:2] == [OutcomeKind.VALUE] * 2
    assert SLEPT in {outcome.error_type for outcome in report.outcomes if outcome.kind is OutcomeKind.TIME_LIMIT}
    assert kinds[-1] is OutcomeKind.NOT_RUN
