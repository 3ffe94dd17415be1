"""Locks for a piece of work: one process at a time, and nothing stays."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from codea1_env.records.locks import hold_lock

WORKER = """
import sys
from pathlib import Path
from codea1_env.records.locks import hold_lock

lock, log = map(Path, sys.argv[1:])
for _ in range(100):
    with hold_lock(lock):
        with log.open("a") as file:
            file.write("(")
        with log.open("a") as file:
            file.write(")")
"""


def test_processes_that_remove_the_lock_take_turns(tmp_path: Path) -> None:
    lock, log = tmp_path / "new" / "work.lock", tmp_path / "log"
    command = [sys.executable, "-c", WORKER, str(lock), str(log)]
    workers = [subprocess.Popen(command) for _ in range(4)]
    assert [worker.wait() for worker in workers] == [0] * 4
    assert log.read_text() == "()" * 400
    assert not lock.exists()


def test_work_that_fails_leaves_no_lock(tmp_path: Path) -> None:
    def work() -> None:
        with hold_lock(tmp_path / "work.lock"):
            assert (tmp_path / "work.lock").exists()
            raise ValueError("why")

    with pytest.raises(ValueError, match="why"):
        work()
    assert list(tmp_path.iterdir()) == []
