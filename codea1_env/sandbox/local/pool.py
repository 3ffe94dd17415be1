"""The zygotes of one sandbox: started when needed, one per core and kind, in the strongest tier available."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from time import monotonic

from codea1_env.sandbox.local.worker import USUAL_UPKEEP, Launch, Setup, Upkeep, Worker, WorkerDied, launch_here

_JOBS_PER_WORKER = 2  # one runs while the other is started or its report is read
_MAX_SLEEPERS_PER_WORKER = 16
_START_TIMEOUT_S = 60.0
_MAX_FAILED_STARTS = 8
_FIRST_PAUSE_S = 0.05  # after a failed start; then twice as long each time, 6 s in all


class Pool:
    """Not thread-safe: only the scheduler's thread uses it.

    Args:
        n_workers: zygotes per kind, and the number of cores that jobs may keep busy.
        tiers: tried in this order.
        watch: called with each new worker.
        launch: starts zygotes.
        upkeep: when zygotes are replaced.
    """

    def __init__(
        self,
        n_workers: int,
        tiers: Sequence[str],
        watch: Callable[[Worker], None],
        launch: Launch = launch_here,
        upkeep: Upkeep = USUAL_UPKEEP,
    ) -> None:
        self.workers: list[Worker] = []
        self.refusals: list[str] = []
        """Why stronger tiers are not available on this machine."""
        self.guarantee = ""
        """What the tier in force promises; empty until a worker has been ready."""
        self.failure = ""
        """Set when no worker can be started; the scheduler reports and clears it."""
        self._n_workers = n_workers
        self._tiers = deque(tiers)
        self._watch = watch
        self._launch = launch
        self._upkeep = upkeep
        self._n_failed_starts = 0
        self._next_start = 0.0
        self._is_refused = False

    @property
    def tier(self) -> str:
        """The tier in force, or the next one to try."""
        return self._tiers[0]

    @property
    def is_refused(self) -> bool:
        """Whether none of the tiers is available on this machine."""
        return self._is_refused

    @property
    def is_starting(self) -> bool:
        """Whether some worker is still starting."""
        return any(not worker.ready for worker in self.workers)

    def is_full(self, n_busy: int) -> bool:
        """Whether `n_busy` jobs keep all cores busy."""
        return n_busy >= self._n_workers * _JOBS_PER_WORKER

    def worker_for(self, setup: Setup, busy: Sequence[Worker], asleep: Sequence[Worker]) -> Worker | None:
        """Return a worker of a kind that can take a job now; start another one if too few run.

        Args:
            setup: the kind.
            busy: the worker of each job that runs.
            asleep: the worker of each job that uses no processor.
        """
        if self.is_full(len(busy)):
            return None
        same = [worker for worker in self.workers if worker.setup is setup and not worker.is_worn_out]
        ready = [worker for worker in same if worker.ready and asleep.count(worker) < _MAX_SLEEPERS_PER_WORKER]
        best = min(ready, key=busy.count, default=None)
        if best is not None and best not in busy:
            return best
        may_start = len(same) < self._n_workers and all(worker.ready for worker in same)
        if may_start and monotonic() >= self._next_start:
            self._start(setup)
        return best if best is not None and busy.count(best) < _JOBS_PER_WORKER else None

    def note_ready(self, worker: Worker) -> None:
        """Record that a worker has reported that it is ready."""
        self._n_failed_starts = 0
        self.guarantee = worker.guarantee

    def expired(self, busy: Iterable[Worker]) -> list[Worker]:
        """Return the idle workers that have forked as often as their upkeep allows.

        Args:
            busy: the worker of each job that runs.
        """
        old = [worker for worker in self.workers if worker.is_worn_out]
        return [worker for worker in old if worker not in set(busy)] if old else []

    def retire(self, worker: Worker) -> None:
        """End a worker that runs nothing."""
        self.workers.remove(worker)
        worker.close()

    def remove_dead(self, worker: Worker) -> None:
        """Remove a worker that has died or refuses its tier."""
        self.workers.remove(worker)
        worker.kill()
        if worker.refusal:
            self._refuse(worker)
        elif not worker.ready:
            self._count_failed_start("they end at once")

    def close(self) -> None:
        """End all workers."""
        while self.workers:
            self.workers.pop().close()

    def forget(self) -> None:
        """Close the copies of the workers' sockets in a forked process; the workers belong to its parent."""
        while self.workers:
            self.workers.pop().forget()

    def _start(self, setup: Setup) -> None:
        try:
            worker = Worker(setup, self.tier, self._launch, self._upkeep)
        except WorkerDied as error:
            self._count_failed_start(str(error))
            return
        worker.deadline = monotonic() + _START_TIMEOUT_S
        self.workers.append(worker)
        self._watch(worker)

    def _refuse(self, worker: Worker) -> None:
        if worker.tier != self.tier:
            return  # another worker has refused it before
        if (reason := f"{worker.tier}: {worker.refusal}") not in self.refusals:
            self.refusals.append(reason)
        if len(self._tiers) > 1:
            self._tiers.popleft()
        else:
            self._is_refused = True
            self.failure = f"none of the required kinds of isolation is available here ({'; '.join(self.refusals)})"

    def _count_failed_start(self, error: str) -> None:
        self._next_start = monotonic() + _FIRST_PAUSE_S * 2**self._n_failed_starts
        self._n_failed_starts += 1
        if self._n_failed_starts >= _MAX_FAILED_STARTS:
            self._n_failed_starts = 0
            self.failure = f"the sandbox's workers do not start: {error}"
