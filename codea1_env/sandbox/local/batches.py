"""Waiting jobs. Batches take turns, one job each, so that a small batch does not wait for a large one."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from codea1_env.sandbox.interface import Job, JobReport
from codea1_env.sandbox.local.worker import Setup


class Ticket(NamedTuple):
    """One job of a batch."""

    batch: Batch
    position: int
    attempt: int

    @property
    def job(self) -> Job:
        """The job itself."""
        return self.batch.jobs[self.position]


@dataclass(slots=True, eq=False)
class Batch:
    """The jobs of one call of `run`."""

    jobs: Sequence[Job]
    setup_for: Callable[[Job], Setup]
    """Returns the kind of zygote that a job needs."""
    done: threading.Event = field(default_factory=threading.Event)
    """Set when all reports are complete, or `error` is set."""
    error: str = ""
    """Why the sandbox could not be used at all."""
    is_cancelled: bool = False
    reports: list[JobReport | None] = field(init=False)
    waiting: deque[Ticket] = field(init=False)
    _n_open: int = field(init=False)
    _setups: dict[int, Setup] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.reports = [None] * len(self.jobs)
        self.waiting = deque(Ticket(self, position, 1) for position in range(len(self.jobs)))
        self._n_open = len(self.jobs)

    def setup_of(self, position: int) -> Setup:
        """Return the kind of zygote that a job needs. Searches the job's source texts once."""
        if position not in self._setups:
            self._setups[position] = self.setup_for(self.jobs[position])
        return self._setups[position]

    def settle(self, position: int, report: JobReport) -> None:
        """Store the report of a job."""
        self.reports[position] = report
        self._n_open -= 1
        if self._n_open == 0:
            self.done.set()

    def fail(self, error: str) -> None:
        """End the batch with an error, unless it is done."""
        if not self.done.is_set():
            self.error = error
            self.done.set()


class Queue:
    """The batches that have waiting jobs."""

    def __init__(self) -> None:
        self._batches: deque[Batch] = deque()

    def __bool__(self) -> bool:
        return bool(self._batches)

    def __iter__(self) -> Iterator[Batch]:
        return iter(self._batches)

    def add(self, batch: Batch) -> None:
        """Queue all waiting jobs of a batch."""
        if batch not in self._batches:
            self._batches.append(batch)

    def put_back(self, ticket: Ticket) -> None:
        """Queue a job again, before the others of its batch."""
        ticket.batch.waiting.appendleft(ticket)
        self.add(ticket.batch)

    def heads(self) -> Iterator[Ticket]:
        """Yield the first waiting job of each batch, in turn; the caller may `take` it at once."""
        for _ in range(len(self._batches)):
            batch = self._batches[0]
            if batch.is_cancelled or not batch.waiting:
                self._batches.popleft()
                continue
            self._batches.rotate(-1)
            yield batch.waiting[0]

    def take(self, ticket: Ticket) -> None:
        """Remove a job that `heads` has just yielded."""
        ticket.batch.waiting.popleft()

    def clear(self) -> list[Batch]:
        """Remove and return all batches."""
        batches = list(self._batches)
        self._batches.clear()
        return batches
