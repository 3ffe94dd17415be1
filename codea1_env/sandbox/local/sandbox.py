"""The local sandbox: a pool of zygotes, shared by any number of environments and threads."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import re
import sys
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path

from codea1_env.errors import SandboxError, UnknownName
from codea1_env.records.closing import Closing
from codea1_env.sandbox.interface import Guarantee, Job, JobReport
from codea1_env.sandbox.local.scheduler import Batch, Hold, Scheduler
from codea1_env.sandbox.local.worker import Setup
from codea1_env.sandbox.shared import one_per_process

TIERS = ("namespaces", "bwrap", "landlock", "seccomp", "rlimits")
"""Kinds of isolation, strongest first; see `codea1_env.sandbox.inside.seal`."""

WEAK_TIERS = ("seccomp", "rlimits")
"""Tiers in which programs can read the host's files; used only if explicitly allowed."""

ALLOW_WEAK_VARIABLE = "CODEA1_ALLOW_WEAK_SANDBOX"
"""Environment variable: 1 allows the weak tiers, unless a sandbox's arguments say otherwise."""

REQUIRE_VARIABLE = "CODEA1_REQUIRE_TIER"
"""Environment variable: weakest tier to accept, unless a sandbox's arguments say otherwise."""

PACKAGES = ("numpy",)
"""Site packages that programs may import by default."""

EACH_KIND = ("", "# import threading", "# import numpy")
"""Comments, one per kind of interpreter; a program that contains the comment runs in that kind."""

_POLL_S = 1.0  # in case the scheduler has died

# Imported before the fork only for programs that name them: all other programs would pay for their memory.
_RARER = ("calendar", "dataclasses", "datetime", "decimal", "fractions", "queue", "statistics", "textwrap", "threading")
# Both the pattern and the searched length are bounded: the text is untrusted, and the trainer waits.
_IMPORTS_RARER = re.compile(rf"\b(?:import|from)[ \t][^\n]{{0,80}}?\b(?:{'|'.join(_RARER)})\b")
_MAX_SEARCHED = 20_000


class LocalSandbox(Closing):
    """Runs jobs in processes forked from prepared, sealed interpreters.

    Starts lazily. Safe to use from any thread. After a fork of this process, the new process starts its own workers.

    Args:
        workers: how many interpreters run jobs at the same time, per kind (plain, with more of the standard library
            imported, with numpy); by default one per usable core.
        packages: top-level names of the site packages that programs may import, if they are installed. All others are
            hidden, since some contain the answers to the problems.
        tiers: kinds of isolation, tried in this order until one is available; by default those that `require` and
            `allow_weak` permit, strongest first.
        require: weakest tier to accept; by default the value of `CODEA1_REQUIRE_TIER`, else `landlock`.
        allow_weak: whether to fall back on `WEAK_TIERS` if no stronger tier is available; by default the value of
            `CODEA1_ALLOW_WEAK_SANDBOX`, else False.

    Raises:
        ValueError: fewer than one worker.
        UnknownName: an unknown tier.
    """

    name = "local"

    def __init__(
        self,
        workers: int | None = None,
        *,
        packages: Sequence[str] = PACKAGES,
        tiers: Sequence[str] | None = None,
        require: str | None = None,
        allow_weak: bool | None = None,
    ) -> None:
        if workers is not None and workers < 1:
            raise ValueError(f"workers must be at least 1, got {workers}")
        if tiers is None:
            tiers = _acceptable(require, allow_weak)
        for tier in tiers or ("",):
            _check_tier(tier)
        n_cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
        self._n_workers = workers or n_cores
        self._packages = tuple(packages)
        self._tiers = tuple(tiers)
        self._kinds = _Kinds(self._packages)
        self._lock = threading.Lock()
        self._scheduler: Scheduler | None = None
        self._end: weakref.finalize[..., LocalSandbox] | None = None
        _INSTANCES.add(self)

    @property
    def tier(self) -> str:
        """Name of the isolation in force; starts a worker to find out.

        Raises:
            SandboxError: no worker starts.
        """
        return self._probe().pool.tier

    @property
    def guarantee(self) -> Guarantee:
        """What the isolation in force promises; starts a worker to find out.

        Raises:
            SandboxError: no worker starts.
        """
        return Guarantee(self._probe().pool.guarantee)

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why stronger tiers are not available, one sentence each; starts a worker to find out.

        Raises:
            SandboxError: no worker starts.
        """
        return tuple(self._probe().pool.refusals)

    def run(self, jobs: Sequence[Job], hold: Hold | None = None) -> list[JobReport]:
        """Run all jobs; return the reports in the order of the jobs.

        Within a job, direct calls are evaluated before harness calls. A program works on copies of a harness's
        arguments; see `Harness.is_trusted` for whether the harness sees the changes that the program makes to them.

        Args:
            jobs: to run.
            hold: is called in another thread.

        Raises:
            SandboxError: no worker starts, or the sandbox was closed meanwhile.
            CodeA1Error: what `hold` has raised.
        """
        if not jobs:
            return []
        batch = Batch(tuple(jobs), self._kinds.setup_for, hold)
        scheduler = self._start()
        scheduler.submit(batch)
        try:
            while not batch.done.wait(_POLL_S):
                if not scheduler.is_alive and not batch.done.wait(_POLL_S):
                    raise SandboxError("the sandbox was closed")
        finally:
            if not batch.done.is_set():
                scheduler.cancel(batch)
        refusal, batch.refusal = batch.refusal, None
        if refusal is not None:
            try:
                raise refusal
            finally:
                del refusal, batch  # its traceback would hold all reports until garbage is collected
        if batch.error:
            is_refused = scheduler.pool.is_refused and scheduler.pool.tier in TIERS
            raise SandboxError(batch.error + (_alternative(self._tiers) if is_refused else ""))
        return [report for report in batch.reports if report is not None]

    def oldest(self) -> tuple[str, float] | None:
        """Return the problem of the job that has been running for longest, and when it began; None without one."""
        scheduler = self._scheduler
        return None if scheduler is None else scheduler.oldest()

    def close(self) -> None:
        """End all workers; idempotent. A later `run` starts new ones."""
        with self._lock:
            end, self._end, self._scheduler = self._end, None, None
        if end is not None:
            end()

    def __reduce__(self) -> tuple[object, ...]:
        return functools.partial(LocalSandbox, self._n_workers, packages=self._packages, tiers=self._tiers), ()

    def _start(self) -> Scheduler:
        with self._lock:
            if self._scheduler is None or not self._scheduler.is_alive:
                self._scheduler = self._new_scheduler()
                self._end = weakref.finalize(self, self._scheduler.close)  # also at interpreter exit
            return self._scheduler

    def _new_scheduler(self) -> Scheduler:
        """Return the scheduler that runs the jobs; subclasses override this."""
        return Scheduler(self._n_workers, self._tiers)

    def _probe(self) -> Scheduler:
        scheduler = self._start()
        if not scheduler.pool.guarantee:
            self.run([Job(program="def f(): pass", entry_point="f")])
        return scheduler

    def _forget(self) -> None:
        """Reset the instance in a forked process, where its threads, locks and sockets no longer work."""
        self._lock = threading.Lock()
        scheduler, self._scheduler = self._scheduler, None
        if self._end is not None:
            self._end.detach()
            self._end = None
        if scheduler is not None:
            scheduler.forget()


class _Kinds:
    """The kinds of zygote: plain, with rarer modules already imported, and with numpy as well.

    Importing these modules takes longer than most jobs; but once imported, they make each job take longer.
    """

    def __init__(self, packages: Sequence[str]) -> None:
        self._packages = packages

    @functools.cached_property
    def plain(self) -> Setup:
        return Setup({name: folder for name in self._packages if (folder := _site_folder(name))})

    @functools.cached_property
    def _with_more(self) -> Setup:
        return Setup(self.plain.packages, _RARER)

    @functools.cached_property
    def _with_numpy(self) -> Setup:
        return Setup(self.plain.packages, (*_RARER, "numpy")) if "numpy" in self.plain.packages else self._with_more

    def setup_for(self, job: Job) -> Setup:
        texts = [job.program, job.preamble, job.harness.source]
        texts += [text for call in job.calls if call.imports for text in call.imports]
        if any("numpy" in text for text in texts):
            return self._with_numpy
        if any(_IMPORTS_RARER.search(text, 0, _MAX_SEARCHED) is not None for text in texts):
            return self._with_more
        return self.plain


_INSTANCES: weakref.WeakSet[LocalSandbox] = weakref.WeakSet()


def _acceptable(require: str | None, allow_weak: bool | None) -> tuple[str, ...]:
    """Return the tiers that are strong enough. The only function that reads the environment variables."""
    if require is None and allow_weak is None:
        require = os.environ.get(REQUIRE_VARIABLE) or None
    if allow_weak is None:
        allow_weak = os.environ.get(ALLOW_WEAK_VARIABLE, "") == "1"
    if require is None:
        return TIERS if allow_weak else tuple(tier for tier in TIERS if tier not in WEAK_TIERS)
    _check_tier(require)
    return TIERS[: TIERS.index(require) + 1]


def _alternative(refused: Sequence[str]) -> str:
    """Return which weaker tier than those refused is available and how to allow it; empty if there is none."""
    for tier in TIERS[max(map(TIERS.index, refused)) + 1 :]:
        with LocalSandbox(1, packages=(), tiers=(tier,)) as other, contextlib.suppress(SandboxError):
            how = f"allow_weak=True or {ALLOW_WEAK_VARIABLE}=1" if tier in WEAK_TIERS else f"require={tier!r}"
            return f"; the strongest available is {tier} ({other.guarantee.value}), with {how}"
    return ""


def _check_tier(tier: str) -> None:
    if tier not in TIERS:
        raise UnknownName.of("sandbox tier", tier, TIERS)


@one_per_process
def shared_sandbox() -> LocalSandbox:
    """Return the sandbox of this process with default settings, made on first use and closed at interpreter exit."""
    return LocalSandbox()


def _after_fork() -> None:
    for sandbox in list(_INSTANCES):
        sandbox._forget()


def _site_folder(name: str) -> str | None:
    """Return the folder that contains an installed top-level package or module."""
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
