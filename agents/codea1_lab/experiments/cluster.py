"""Runs cells as tasks of a Ray cluster. Each cell still has its own process and its own Ray."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from codea1_env.errors import extra_needed
from codea1_lab.experiments.grid import Cell
from codea1_lab.experiments.pool import LocalProcesses


class ClusterProcesses:
    """Runs cells on the nodes that have a free processor.

    Args:
        folder: of the experiment, on a file system that all nodes share.
        address: of the cluster, or `auto`.

    Raises:
        MissingExtra: Ray is not installed.
    """

    def __init__(self, folder: Path, address: str) -> None:
        with extra_needed("running cells on a cluster", "rllib"):
            import ray  # noqa: PLC0415  heavy
        self._ray: Any = ray
        self._folder = folder.resolve()
        if not ray.is_initialized():
            ray.init(address=address, log_to_driver=False)
        self._task = ray.remote(num_cpus=1, max_retries=3)(_run_cell)

    def begin(self, cell: Cell) -> Any:
        """Queue a cell."""
        return self._task.remote(self._folder, cell)

    def has_ended(self, handle: Any) -> bool:
        """Return whether the task has ended; also true if its node is lost."""
        finished, _ = self._ray.wait([handle], timeout=0)
        return bool(finished)

    def stop(self, handles: Sequence[Any]) -> None:
        """Cancel the tasks; Ray ends their processes."""
        for handle in handles:
            with suppress(self._ray.exceptions.RayError):
                self._ray.cancel(handle, force=True)


def _run_cell(folder: Path, cell: Cell) -> None:
    processes = LocalProcesses(folder)
    handle = processes.begin(cell)
    try:
        handle.wait()
    finally:
        processes.stop([handle])
