"""Containers start, end, die and are removed: nothing hangs, nothing is left, nothing is lost."""

from __future__ import annotations

import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import codea1_env.sandbox.docker.sandbox
from codea1_env.errors import SandboxError
from codea1_env.facts.verdicts import OutcomeKind
from codea1_env.sandbox.docker.engine import connected
from codea1_env.sandbox.docker.sandbox import DockerSandbox
from codea1_env.sandbox.interface import Call, Job
from codea1_env.sandbox.local.worker import Upkeep
from tests.support.containers import missing_engine
from tests.support.processes import descendants
from tests.support.sandboxes import DOUBLE, answers, busy_user
from tests.support.waiting import wait_until

if obstacle := missing_engine():
    pytest.skip(obstacle, allow_module_level=True)

NAP = Job("import time\ndef f(x):\n    time.sleep(x)\n    return x\n", "f", (Call("f(1.5)"),))


def test_one_container_holds_all_zygotes_and_close_removes_it(engine: Any) -> None:
    before, files = engine.ids(), len(os.listdir("/proc/self/fd"))
    kinds = [DOUBLE, replace(DOUBLE, program=f"import threading\n{DOUBLE.program}")]
    sandbox = DockerSandbox(2)
    for _ in range(2):
        assert all(report.outcomes[0].value == b"42" for report in sandbox.run(kinds * 20))
        assert len(engine.ids() - before) == 1
        sandbox.close()
        sandbox.close()
        assert engine.ids() == before
    assert wait_until(lambda: len(os.listdir("/proc/self/fd")) == files)


@pytest.mark.parametrize("ending", ["", *(f"os.kill(os.getpid(), signal.{each})" for each in ("SIGTERM", "SIGKILL"))])
def test_however_a_user_ends_no_container_is_left(engine: Any, started: Any, ending: str) -> None:
    before = engine.ids()
    user = started(busy_user("codea1_env.sandbox.docker.sandbox.DockerSandbox", ending))
    assert user.stdout.readline() == "ready\n"
    (container,) = engine.ids() - before
    first = engine.main_pid(container)
    idle = descendants(first)
    user.stdin.write("\n")
    user.stdin.flush()
    wait_until(lambda: descendants(first) - idle)
    user.communicate("\n", timeout=30)
    assert wait_until(lambda: container not in engine.ids())


def test_a_fork_of_a_user_has_a_container_of_its_own(engine: Any, started: Any) -> None:
    before = engine.ids()
    user = started(
        """
        import os, sys
        from codea1_env.sandbox.docker.sandbox import DockerSandbox
        from codea1_env.sandbox.interface import Call, Job
        job = Job("def f(): return 7", "f", (Call("f()"),))
        sandbox = DockerSandbox(1)
        assert sandbox.run([job])[0].outcomes[0].value == b"7"
        pid = os.fork()
        assert sandbox.run([job])[0].outcomes[0].value == b"7"
        if pid == 0:
            sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert sandbox.run([job])[0].outcomes[0].value == b"7"
        """
    )
    _, errors = user.communicate(timeout=60)
    assert user.returncode == 0, errors
    assert wait_until(lambda: engine.ids() <= before)


def test_a_killed_container_is_replaced_and_its_job_run_again(engine: Any) -> None:
    before = engine.ids()
    with DockerSandbox(1) as sandbox, ThreadPoolExecutor(1) as pool:
        assert answers(sandbox)
        (mine,) = engine.ids() - before
        first = engine.main_pid(mine)
        idle = descendants(first)
        waiting = pool.submit(sandbox.run, [NAP, DOUBLE])
        wait_until(lambda: descendants(first) - idle)
        with connected() as client:
            client.kill(mine)
        assert [report.outcomes[0].value for report in waiting.result(timeout=30)] == [b"1.5", b"42"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can stop a zygote")
@pytest.mark.parametrize("only_zygotes", [True, False])
def test_what_hangs_is_killed_and_replaced(engine: Any, monkeypatch: pytest.MonkeyPatch, only_zygotes: bool) -> None:
    impatient = partial(codea1_env.sandbox.docker.sandbox._Scheduler, upkeep=Upkeep(answer_timeout_s=1.0))
    monkeypatch.setattr(codea1_env.sandbox.docker.sandbox, "_Scheduler", impatient)
    before = engine.ids()
    with DockerSandbox(1) as sandbox:
        assert answers(sandbox)
        (mine,) = engine.ids() - before
        first = engine.main_pid(mine)
        hanging = descendants(first) - ({first} if only_zygotes else set())
        for process in hanging:
            os.kill(process, signal.SIGSTOP)
        assert answers(sandbox)
        assert wait_until(lambda: not any(Path(f"/proc/{process}").exists() for process in hanging))
        assert (engine.ids() - before == {mine}) == only_zygotes


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("dockerd"), reason="needs an engine of its own to restart")
def test_an_engine_that_is_restarted_costs_no_verdict(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = engine.new_folder()
    try:
        monkeypatch.setenv("DOCKER_HOST", engine.start(folder))
        with DockerSandbox(1, packages=()) as sandbox, ThreadPoolExecutor(1) as pool:
            assert answers(sandbox)
            pid = int((folder / "pid").read_text())
            (container,) = engine.ids()
            first = engine.main_pid(container)
            idle = descendants(first)
            waiting = pool.submit(sandbox.run, [NAP, DOUBLE])
            wait_until(lambda: descendants(first) - idle)
            os.kill(pid, signal.SIGTERM)
            assert wait_until(lambda: not Path(f"/proc/{pid}").exists(), 30)
            engine.start(folder)
            outcomes = [report.outcomes[0] for report in waiting.result(timeout=40)]
            for outcome, value in zip(outcomes, (b"1.5", b"42"), strict=True):
                assert outcome.value == value or outcome.kind is OutcomeKind.INTERNAL_ERROR
            assert answers(sandbox)
    finally:
        engine.stop(folder)


def test_an_engine_that_is_gone_is_said_and_used_when_it_is_back(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codea1_env.sandbox.docker.container._RESTART_TIMEOUT_S", 0.5)
    before = engine.ids()
    with DockerSandbox(1) as sandbox, pytest.MonkeyPatch.context() as patch:
        assert answers(sandbox)
        (mine,) = engine.ids() - before
        with connected() as client:
            patch.setenv("DOCKER_HOST", "unix:///nowhere/socket")
            client.kill(mine)
        with pytest.raises(SandboxError, match="no Docker engine answers"):
            wait_until(lambda: not answers(sandbox))
        patch.undo()
        assert answers(sandbox)
