"""Runs each cell in its own process, several at a time, after the cells that it needs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from codea1_env.errors import UserError
from codea1_lab.experiments.declaration import Experiment
from codea1_lab.experiments.grid import Cell, ready
from codea1_lab.experiments.results import RESULT

_POLL_S = 0.2
_GRACE_S = 20.0  # for a cell to end after SIGTERM


class CellFailed(UserError):
    """A cell's process ended without a result."""


@dataclass(frozen=True, slots=True)
class CellProgress:
    """Progress of an experiment."""

    n_done: int
    n_cells: int
    running: tuple[Cell, ...]


def cell_command(folder: Path, cell: Cell) -> list[str]:
    """Return the command line that runs a cell."""
    return [sys.executable, "-m", "codea1_lab.experiments.cell", str(folder), cell.name]


def cell_environment(outer: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of a cell: one thread, sums that do not depend on addresses, and its own Ray."""
    kept = {name: value for name, value in outer.items() if not name.startswith("RAY_")}
    return {"MKL_CBWR": "AUTO", **kept, "OMP_NUM_THREADS": "1"}


class LocalProcesses:
    """Runs cells as processes of this machine.

    Args:
        folder: the experiment's folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def begin(self, cell: Cell) -> subprocess.Popen[bytes]:
        """Start the process of a cell; its output goes to a log in its folder."""
        place = self._folder / "cells" / cell.name
        place.mkdir(parents=True, exist_ok=True)
        with (place / "log.txt").open("ab") as log:
            return subprocess.Popen(
                cell_command(self._folder, cell),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=cell_environment(os.environ),
                start_new_session=True,  # Ctrl-C reaches only this process, which then stops the cells
            )

    def has_ended(self, handle: subprocess.Popen[bytes]) -> bool:
        """Return whether the process has ended."""
        return handle.poll() is not None

    def stop(self, handles: Sequence[subprocess.Popen[bytes]]) -> None:
        """Terminate the processes, wait 20 s, then kill the rest with all their children. Ctrl-C ends the wait."""
        try:
            for handle in handles:
                handle.terminate()  # not SIGINT, which children of a background job ignore
            end = time.monotonic() + _GRACE_S
            for handle in handles:
                with suppress(subprocess.TimeoutExpired):
                    handle.wait(max(0.0, end - time.monotonic()))
        finally:
            for handle in handles:
                with suppress(ProcessLookupError):
                    os.killpg(handle.pid, signal.SIGKILL)
                handle.wait()


def run_cells(
    experiment: Experiment,
    cells: Sequence[Cell],
    folder: Path,
    processes: LocalProcesses,
    *,
    workers: int,
    report: Callable[[CellProgress], None] = lambda _: None,
) -> None:
    """Run all cells whose result is missing.

    Args:
        experiment: declares the cells; `folder/experiment.json` records it.
        cells: in the order in which to start them.
        folder: the experiment's folder.
        processes: start and stop the cells.
        workers: number of cells at a time.
        report: called whenever a cell starts or ends.

    Raises:
        CellFailed: at least one cell failed. The cells that do not need it have been run.
        KeyboardInterrupt: the running cells were stopped. The next call completes them.
    """
    done = {cell for cell in cells if _has_result(folder, cell)}
    failed: list[Cell] = []
    running: dict[Cell, subprocess.Popen[bytes]] = {}
    try:
        while True:
            waiting = [cell for cell in ready(experiment, cells, done) if cell not in running and cell not in failed]
            for cell in waiting[: workers - len(running)]:
                running[cell] = processes.begin(cell)
                report(CellProgress(len(done), len(cells), tuple(running)))
            if not running:
                break
            time.sleep(_POLL_S)
            for cell in [cell for cell, handle in running.items() if processes.has_ended(handle)]:
                del running[cell]
                if _has_result(folder, cell):
                    done.add(cell)
                else:
                    failed.append(cell)
                report(CellProgress(len(done), len(cells), tuple(running)))
    finally:
        processes.stop(list(running.values()))
    if failed:
        others = f" and {len(failed) - 1} others" if len(failed) > 1 else ""
        log = folder / "cells" / failed[0].name / "log.txt"
        raise CellFailed(f"{failed[0].name}{others} failed, see {log}; the same command runs the missing cells")


def _has_result(folder: Path, cell: Cell) -> bool:
    return (folder / "cells" / cell.name / RESULT).exists()
