"""The sandbox that runs on this machine: a pool of zygotes, shared by any number of environments and threads."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path

from codea1_env.errors import SandboxError, UnknownName
from codea1_env.sandbox.batches import Batch
from codea1_env.sandbox.interface import Guarantee, Job, JobReport
from codea1_env.sandbox.scheduler import Scheduler
from codea1_env.sandbox.worker import Setup

__all__ = ["PACKAGES", "TIERS", "LocalSandbox", "shared_sandbox"]

TIERS = ("namespaces", "landlock", "seccomp", "rlimits")
"""Kinds of isolation, strongest first; see `codea1_env.sandbox.inside.seal`."""

PACKAGES = ("numpy",)
"""Site packages that programs may import by default."""


class LocalSandbox:
    """Runs jobs in processes forked from warm, sealed interpreters.

    Starts lazily. Safe to use from any thread; after a fork of this process, the new process starts workers of its own.

    Args:
        workers: how many interpreters run jobs at the same time, per kind (with and without numpy); by default one
            per usable core.
        packages: top-level names of the site packages that programs may import, where they are installed. All others
            are hidden: some hold the answers to the problems.
        tiers: kinds of isolation, tried in this order until one can be had here.

    Raises:
        ValueError: fewer than one worker.
        UnknownName: no such tier.
    """

    def __init__(
        self, workers: int | None = None, *, packages: Sequence[str] = PACKAGES, tiers: Sequence[str] = TIERS
    ) -> None:
        if workers is not None and workers < 1:
            raise ValueError(f"a sandbox needs at least one worker, not {workers}")
        for tier in tiers or ("",):
            if tier not in TIERS:
                raise UnknownName.of("sandbox tier", tier, TIERS)
        self._n_workers = workers or _n_usable_cores()
        self._packages = tuple(packages)
        self._tiers = tuple(tiers)
        self._kinds = _Kinds(self._packages)
        self._lock = threading.Lock()
        self._scheduler: Scheduler | None = None
        self._end: weakref.finalize[..., LocalSandbox] | None = None
        _INSTANCES.add(self)

    @property
    def name(self) -> str:
        """`local`."""
        return "local"

    @property
    def tier(self) -> str:
        """Name of the isolation that holds here; starts a worker to find out.

        Raises:
            SandboxError: no worker starts.
        """
        return self._probed().pool.tier

    @property
    def guarantee(self) -> Guarantee:
        """What the isolation that holds here promises; starts a worker to find out.

        Raises:
            SandboxError: no worker starts.
        """
        return Guarantee(self._probed().pool.guarantee)

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why stronger tiers than the present one cannot be had here, one sentence each; starts a worker to find out.

        Raises:
            SandboxError: no worker starts.
        """
        return tuple(self._probed().pool.refusals)

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        """Run all jobs; reports in the order of the jobs.

        Within a job, direct calls are evaluated before harness calls. A harness sees copies: what a program does to
        its arguments in place does not show.

        Raises:
            SandboxError: no worker starts, or the sandbox was closed meanwhile.
        """
        if not jobs:
            return []
        scheduler = self._started()
        batch = Batch(tuple(jobs), self._kinds.setup_for)
        scheduler.submit(batch)
        try:
            while not batch.done.wait(1.0):
                if not scheduler.is_alive and not batch.done.wait(1.0):
                    raise SandboxError("the sandbox was closed")
        finally:
            if not batch.done.is_set():
                scheduler.cancel(batch)
        if batch.error:
            raise SandboxError(batch.error)
        return [report for report in batch.reports if report is not None]

    def close(self) -> None:
        """End all workers; idempotent. A later `run` starts afresh."""
        with self._lock:
            end, self._end, self._scheduler = self._end, None, None
        if end is not None:
            end()

    def __enter__(self) -> LocalSandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[object, ...]:
        return _remade, (self._n_workers, self._packages, self._tiers)

    def _started(self) -> Scheduler:
        with self._lock:
            if self._scheduler is None or not self._scheduler.is_alive:
                self._scheduler = Scheduler(self._n_workers, self._tiers)
                self._end = weakref.finalize(self, self._scheduler.close)  # also at interpreter exit
            return self._scheduler

    def _probed(self) -> Scheduler:
        scheduler = self._started()
        if not scheduler.pool.guarantee:
            self.run([Job(program="def f(): pass", entry_point="f")])
        return scheduler

    def _forget(self) -> None:
        """Start anew in a forked process, whose copies of our threads, locks and sockets are of no use."""
        self._lock = threading.Lock()
        scheduler, self._scheduler = self._scheduler, None
        if self._end is not None:
            self._end.detach()
            self._end = None
        if scheduler is not None:
            scheduler.forget()


class _Kinds:
    """The two kinds of zygote: plain, and with numpy imported already (which takes longer than most jobs)."""

    def __init__(self, packages: Sequence[str]) -> None:
        self._packages = packages

    @functools.cached_property
    def _plain(self) -> Setup:
        return Setup({name: folder for name in self._packages if (folder := _site_folder(name))})

    @functools.cached_property
    def _with_numpy(self) -> Setup:
        return Setup(self._plain.packages, ("numpy",)) if "numpy" in self._plain.packages else self._plain

    def setup_for(self, job: Job) -> Setup:
        texts = (job.program, job.preamble, job.harness.source, *(text for call in job.calls for text in call.imports))
        return self._with_numpy if any("numpy" in text for text in texts) else self._plain


_INSTANCES: weakref.WeakSet[LocalSandbox] = weakref.WeakSet()
_shared: LocalSandbox | None = None
_shared_lock = threading.Lock()


def shared_sandbox() -> LocalSandbox:
    """Return this process's own sandbox with default settings, made on first use and closed at interpreter exit."""
    global _shared  # noqa: PLW0603  -- one pool of workers per process is the point
    with _shared_lock:
        if _shared is None:
            _shared = LocalSandbox()
        return _shared


def _remade(workers: int, packages: tuple[str, ...], tiers: tuple[str, ...]) -> LocalSandbox:
    return LocalSandbox(workers, packages=packages, tiers=tiers)


def _after_fork() -> None:
    global _shared_lock  # noqa: PLW0603  -- another thread may have held it during the fork
    _shared_lock = threading.Lock()
    for sandbox in list(_INSTANCES):
        sandbox._forget()


def _n_usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _site_folder(name: str) -> str | None:
    """Return the folder in which an installed top-level package or module lies."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None or not os.path.isabs(spec.origin):
        return None
    origin = Path(spec.origin)
    return str(origin.parent.parent if spec.submodule_search_locations else origin.parent)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
