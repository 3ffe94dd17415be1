"""Cells as processes: order, failures, interruption. The processes are real, what they do is small."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from codea1_env.errors import UserError
from codea1_lab.experiments import pool
from codea1_lab.experiments.declaration import Experiment, System
from codea1_lab.experiments.folder import ExperimentFolder
from codea1_lab.experiments.grid import Cell, cells_of
from codea1_lab.experiments.pool import CellFailed, CellProgress, LocalProcesses, run_cells
from codea1_lab.experiments.results import RESULT
from tests.support.folders import is_held
from tests.support.waiting import wait_until

SMALL = Experiment(
    name="small",
    seeds=2,
    systems=(System(name="a1", preset="code-a1"), System(name="static", preset="golden", supervision="a1")),
)
WRITES = "import pathlib, sys; pathlib.Path(sys.argv[1], 'result.json').write_text('{}')"
FAILS = "raise SystemExit(3)"
SLEEPS = "import time; time.sleep(600)"


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    by_system = {"a1": WRITES, "static": WRITES}

    def command(folder: Path, cell: Cell) -> list[str]:
        return [sys.executable, "-c", by_system[cell.system], str(folder / "cells" / cell.name)]

    monkeypatch.setattr(pool, "cell_command", command)
    return by_system


def done(folder: Path) -> set[str]:
    return {str(path.parent.relative_to(folder / "cells")) for path in (folder / "cells").rglob(RESULT)}


def test_all_cells_run_and_needs_come_first(tmp_path: Path, commands: dict[str, str]) -> None:
    reports: list[CellProgress] = []
    run_cells(SMALL, cells_of(SMALL), tmp_path, LocalProcesses(tmp_path), workers=2, report=reports.append)
    assert len(done(tmp_path)) == 4
    begun = [cell for each in reports for cell in each.running]
    assert begun.index(Cell("a1", 0, 0)) < begun.index(Cell("static", 0, 0))
    assert max(len(each.running) for each in reports) == 2


@pytest.mark.slow
def test_a_failed_cell_stops_only_what_needs_it(tmp_path: Path, commands: dict[str, str]) -> None:
    commands["static"] = FAILS
    with pytest.raises(CellFailed, match=r"static/base-0/seed-0 and 1 others failed, see .*log\.txt"):
        run_cells(SMALL, cells_of(SMALL), tmp_path, LocalProcesses(tmp_path), workers=1)
    assert done(tmp_path) == {"a1/base-0/seed-0", "a1/base-0/seed-1"}
    commands["static"] = WRITES
    run_cells(SMALL, cells_of(SMALL), tmp_path, LocalProcesses(tmp_path), workers=1)
    assert len(done(tmp_path)) == 4


def test_an_interrupt_ends_the_cells(tmp_path: Path, commands: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    commands["a1"] = SLEEPS
    handles: list[subprocess.Popen[bytes]] = []
    stop = pool.LocalProcesses.stop

    def stopping(self: pool.LocalProcesses, running: Sequence[subprocess.Popen[bytes]]) -> None:
        handles.extend(running)
        stop(self, running)

    def interrupt(progress: CellProgress) -> None:
        if progress.running:
            raise KeyboardInterrupt

    monkeypatch.setattr(pool.LocalProcesses, "stop", stopping)
    with pytest.raises(KeyboardInterrupt):
        run_cells(SMALL, cells_of(SMALL), tmp_path, LocalProcesses(tmp_path), workers=1, report=interrupt)
    assert [handle.poll() is not None for handle in handles] == [True]


def test_a_second_interruption_ends_the_wait_and_leaves_no_process(
    tmp_path: Path, commands: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = tmp_path / "ready"
    commands["a1"] = (
        "import pathlib, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        f" pathlib.Path({str(ready)!r}).touch(); time.sleep(600)"
    )
    cells = cells_of(SMALL)[:1]
    processes = pool.LocalProcesses(tmp_path)
    handle = processes.begin(cells[0])
    assert wait_until(ready.exists, 60.0)

    def wait(timeout: float | None = None) -> int:
        if timeout is not None:
            raise KeyboardInterrupt
        return subprocess.Popen.wait(handle)

    monkeypatch.setattr(handle, "wait", wait)
    with pytest.raises(KeyboardInterrupt):
        processes.stop([handle])
    assert handle.returncode == -signal.SIGKILL


@pytest.mark.slow
def test_a_folder_belongs_to_one_experiment_and_one_process(tmp_path: Path) -> None:
    with ExperimentFolder(tmp_path / "a", SMALL):
        assert is_held(tmp_path / "a")
    assert not is_held(tmp_path / "a")
    with ExperimentFolder(tmp_path / "a", SMALL.model_copy(update={"seeds": 5})):
        pass
    changed = SMALL.model_copy(update={"set": {"run.steps": 3}})
    with pytest.raises(UserError, match="'set'"):
        ExperimentFolder(tmp_path / "a", changed)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "letter.txt").write_text("dear")
    with pytest.raises(UserError, match="not empty"):
        ExperimentFolder(tmp_path / "b", SMALL)
