"""One thread that runs any number of batches on a pool of zygotes.

Most jobs cost this thread two wake-ups: one to start the job, and one for the notice that its process has ended, when
all its frames are in the channel. The thread watches the channels only of processes that wait for frames from it; it
checks all other long-running processes on a tick.

Batches take turns, one job each, so that a small batch does not wait for a large one (`Queue`).
"""

from __future__ import annotations

import contextlib
import selectors
import signal
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import NamedTuple

from codea1_env.errors import CodeA1Error
from codea1_env.sandbox.interface import Job, JobReport, Limits
from codea1_env.sandbox.local.execution import Execution, internal_error_report
from codea1_env.sandbox.local.process import Process
from codea1_env.sandbox.local.relay import Foresight
from codea1_env.sandbox.local.script_execution import ScriptExecution
from codea1_env.sandbox.local.waiting import seconds_waited
from codea1_env.sandbox.local.worker import USUAL_UPKEEP, Launch, Pool, Setup, Upkeep, Worker, WorkerDied, launch_here
from codea1_env.sandbox.wire import Notice, Op

Hold = Callable[[int], None]
"""Is told how many bytes more, or fewer, some jobs hold in this process; a `CodeA1Error` from it ends them."""


class Ticket(NamedTuple):
    """One job of a batch."""

    batch: Batch
    position: int
    attempt: int

    @property
    def job(self) -> Job:
        """The job itself."""
        return self.batch.jobs[self.position]

    @property
    def is_usual(self) -> bool:
        """Whether it may use no more than the defaults; then it waits for none that may use more."""
        return not self.job.limits.above(_USUAL)


@dataclass(slots=True, eq=False)
class Batch:
    """The jobs of one call of `run`."""

    jobs: Sequence[Job]
    setup_for: Callable[[Job], Setup]
    """Returns the kind of zygote that a job needs."""
    hold: Hold | None = None
    done: threading.Event = field(default_factory=threading.Event)
    """Set when all reports are complete, or `error` or `refusal` is set."""
    error: str = ""
    """Why the sandbox could not be used at all."""
    refusal: CodeA1Error | None = None
    """What `hold` has raised."""
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


_TICK_S = 0.025
_MEASURE_AFTER_S = 0.05  # most activities are over by then and are never measured
_LINGER_S = 0.05  # in which a process that has answered everything can end by itself
_ASLEEP_SHARE = 0.1  # of a core: a job that uses less does not count as busy
_TURN_S = 0.1  # nor does one of a server's client that takes longer, for others that may use no more than usual
_USUAL = Limits()
_MAX_ATTEMPTS = 2


@dataclass(slots=True, eq=False)
class _Running:
    """One job on one worker."""

    ticket: Ticket
    worker: Worker
    begun: float = field(default_factory=monotonic)
    execution: Execution = field(init=False)
    is_asleep: bool = False
    done_at: float = 0.0
    measured_us: int = 0
    measured_at: float = 0.0
    n_held: int = 0

    def is_long(self, now: float) -> bool:
        """Whether others of a server need not wait until it ends."""
        return self.ticket.batch.hold is not None and now - self.begun > _TURN_S

    def hold(self, n_bytes: int) -> None:
        """State how many bytes its job holds now."""
        batch, more, self.n_held = self.ticket.batch, n_bytes - self.n_held, n_bytes
        try:
            if batch.hold is not None and more:
                batch.hold(more)
        except CodeA1Error as error:
            batch.refusal, batch.is_cancelled = error.with_traceback(None), True
            batch.done.set()


class Scheduler:
    """Owns the thread, its processes and its sockets.

    Args:
        n_workers: zygotes per kind.
        tiers: kinds of isolation, tried in this order.
        launch: starts zygotes.
        upkeep: when zygotes are replaced.
    """

    def __init__(
        self, n_workers: int, tiers: Sequence[str], launch: Launch = launch_here, upkeep: Upkeep = USUAL_UPKEEP
    ) -> None:
        self.pool = Pool(n_workers, tiers, self._watch_worker, launch, upkeep)
        self._inbox: deque[Batch] = deque()
        self._queue = Queue()
        self._foresight = Foresight()
        self._running: dict[_Running, None] = {}
        self._owner: dict[int, _Running] = {}
        """Number of each process that has not ended -> its job."""
        self._last_number = 0
        self._is_closing = False
        self._selector = selectors.DefaultSelector()
        self._wake, self._waker = socket.socketpair()
        self._wake.setblocking(False)
        self._waker.setblocking(False)
        self._selector.register(self._wake, selectors.EVENT_READ, None)
        # The kernel kills a zygote when the thread that started it ends, so this thread starts them.
        self._thread = threading.Thread(target=self._main, name="codea1-sandbox", daemon=True)
        self._thread.start()

    # Called from other threads

    @property
    def is_alive(self) -> bool:
        """Whether batches can be submitted."""
        return self._thread.is_alive() and not self._is_closing

    def submit(self, batch: Batch) -> None:
        """Queue a batch; its `done` is set when all its reports are complete or it has an error."""
        self._inbox.append(batch)
        self._wake_up()

    def oldest(self) -> tuple[str, float] | None:
        """Return the problem of the job that has been running for longest, and when it began; None without one."""
        named = ((each.ticket.job.problem_id, each.begun) for each in list(self._running))
        return next((job for job in named if job[0]), None)

    def cancel(self, batch: Batch) -> None:
        """Stop working on a batch."""
        batch.is_cancelled = True
        self._wake_up()

    def close(self) -> None:
        """End the thread and all processes; idempotent."""
        self._is_closing = True
        self._wake_up()
        self._thread.join()

    def forget(self) -> None:
        """Close the copied descriptors in a forked process, without sending anything."""
        for running in self._running:
            for process in running.execution.processes:
                process.close()
        self.pool.forget()
        self._close_own()

    def _wake_up(self) -> None:
        try:
            self._waker.send(b"\0")
        except OSError:  # full: the thread wakes up anyway; closed: it has ended
            return

    # The thread

    def _main(self) -> None:
        error = "the sandbox was closed"
        try:
            # Writing to a closed pipe must not kill this process if the host has reset Python's handling of SIGPIPE.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
            self._loop()
        except Exception as fault:  # noqa: BLE001  -- the boundary: a bug here must not leave a caller waiting
            error = f"the sandbox's scheduler failed: {fault!r}"
        finally:
            self._is_closing = True
            self._fail_all(error)
            for running in list(self._running):
                with contextlib.suppress(Exception):  # a fault of one job must not keep the others running
                    running.execution.abort()
                self._drop(running)
            self.pool.close()
            self._close_own()
            self._fail_all(error)  # batches that were submitted meanwhile

    def _loop(self) -> None:
        next_tick = 0.0
        while not self._is_closing:
            while self._inbox:
                self._queue.add(self._inbox.popleft())
            self._start_waiting_jobs()
            is_waiting = self._running or self._queue or self.pool.is_starting
            for key, _ in self._selector.select(max(0.0, next_tick - monotonic()) if is_waiting else None):
                self._serve(key.data)
            if monotonic() >= next_tick:
                self._tick()
                next_tick = monotonic() + _TICK_S

    def _close_own(self) -> None:
        self._selector.close()
        self._wake.close()
        self._waker.close()

    def _fail_all(self, error: str) -> None:
        batches = [*self._inbox, *self._queue.clear(), *(running.ticket.batch for running in self._running)]
        self._inbox.clear()
        for batch in batches:
            batch.fail(error)
            batch.is_cancelled = True

    def _serve(self, source: Worker | Process | None) -> None:
        if source is None:
            self._wake.recv(4096)
        elif isinstance(source, Worker):
            self._read_notices(source)
        elif source.number in self._owner:
            source.flush()
            running = self._owner[source.number]
            self._advance(running, lambda: running.execution.on_readable(source))

    # Starting jobs

    def _start_waiting_jobs(self) -> None:
        if self.pool.failure:  # it concerns the jobs that wait now, not those that come later
            self._fail_all(self.pool.failure)
            self.pool.failure = ""
        has_started = bool(self._queue)
        while has_started:
            has_started = False
            for ticket in self._queue.heads():
                is_usual, now = ticket.is_usual, monotonic()
                passed = [each for each in self._running if each.is_asleep or (is_usual and each.is_long(now))]
                busy = [running.worker for running in self._running if running not in passed]
                if self.pool.is_full(len(busy)):
                    continue
                asleep = [running.worker for running in passed if running.ticket.is_usual or not is_usual]
                worker = self.pool.worker_for(ticket.batch.setup_of(ticket.position), busy, asleep)
                if worker is not None:
                    self._queue.take(ticket)
                    has_started = self._start(ticket, worker)

    def _start(self, ticket: Ticket, worker: Worker) -> bool:
        """Start a job; return False if no more jobs can be started now."""
        running = _Running(ticket, worker)

        def spawn(cpu_s: int, max_payload: int) -> Process:
            self._last_number += 1
            limits = ticket.job.limits
            number = self._last_number
            process = Process(number, worker, cpu_s=cpu_s, memory_mb=limits.memory_mb, max_payload=max_payload)
            self._owner[number] = running
            return process

        try:
            running.execution = (
                ScriptExecution(ticket.job, spawn)
                if ticket.job.script
                else Execution(ticket.job, spawn, self._foresight.of(ticket.job))
            )
        except WorkerDied:
            self._queue.put_back(ticket)
            self._remove_dead_worker(worker)
            return True
        except OSError:  # too many open files: running jobs will close some
            if not self._running:
                raise
            self._queue.put_back(ticket)
            return False
        self._running[running] = None
        self._watch_processes(running)
        return True

    # Following jobs

    def _read_notices(self, worker: Worker) -> None:
        was_ready = worker.ready
        try:
            notices = worker.notices()
        except WorkerDied:
            self._remove_dead_worker(worker)
            return
        if worker.ready and not was_ready:
            self.pool.note_ready(worker)
        for notice in notices:
            running = self._owner.get(notice.child)
            if running is not None:
                self._take_notice(running, notice)

    def _take_notice(self, running: _Running, notice: Notice) -> None:
        execution = running.execution
        process = next(process for process in execution.processes if process.number == notice.child)
        if notice.op == Op.EXIT:
            self._set_watched_events(process, 0)
            del self._owner[notice.child]
            self._advance(running, lambda: execution.on_exit(process, notice))
        elif notice.op == Op.CPU:
            now = monotonic()
            share = (notice.cpu_us - running.measured_us) / 1e6 / max(now - running.measured_at, 1e-3)
            running.is_asleep = share < _ASLEEP_SHARE
            running.measured_us, running.measured_at = notice.cpu_us, now
            process.pid, process.is_cpu_requested = notice.pid, False

            def waited_s() -> float | None:
                pids = [each.pid for each in execution.processes if each.pid is not None]
                waits = [seconds_waited(running.worker.pid, pid) for pid in pids]
                return None if None in waits else sum(filter(None, waits))

            is_retry = running.ticket.attempt > 1
            self._advance(running, lambda: execution.on_cpu(process, notice.cpu_us, waited_s, is_retry))

    def _advance(self, running: _Running, step: Callable[[], None]) -> None:
        """Do one step of a job; then retry it, settle it, or watch its processes."""
        execution = running.execution
        try:
            step()
        except WorkerDied:
            self._remove_dead_worker(running.worker)
            return
        except OSError:  # too many open files: not the program's fault
            execution.is_starved = True
        running.hold(execution.n_received)
        if execution.is_starved or execution.is_misled or running.ticket.batch.is_cancelled:
            execution.abort()
        if execution.is_over:
            self._drop(running)
            self._settle(running)
            del running.execution  # which knows `running`: what both hold must not wait for garbage collection
        else:
            self._watch_processes(running)

    def _settle(self, running: _Running) -> None:
        if running.execution.is_starved:
            self._run_again(running, "the machine gave it no processor or no process, or killed it")
        elif running.execution.is_misled:
            self._foresight.forget(running.ticket.job)
            running.hold(0)
            self._queue.put_back(running.ticket)
        else:
            ticket, report = running.ticket, running.execution.report(running.worker.tier)
            if ticket.batch.hold is not None:
                running.hold(report.n_bytes)
            self._foresight.learn(ticket.job, report)
            ticket.batch.settle(ticket.position, report)

    def _run_again(self, running: _Running, reason: str) -> None:
        batch, position, attempt = running.ticket
        running.hold(0)
        if attempt >= _MAX_ATTEMPTS:
            batch.settle(position, internal_error_report(batch.jobs[position], reason, running.worker.tier))
        elif not batch.is_cancelled:
            self._queue.put_back(Ticket(batch, position, attempt + 1))

    def _drop(self, running: _Running) -> None:
        self._running.pop(running, None)
        for process in running.execution.processes:
            self._set_watched_events(process, 0)
            self._owner.pop(process.number, None)
            process.close()

    def _remove_dead_worker(self, worker: Worker) -> None:
        """Remove a worker that has died or hangs, and run its jobs again."""
        if worker not in self.pool.workers:
            return
        self._selector.unregister(worker.control)
        self.pool.remove_dead(worker)
        for running in [running for running in self._running if running.worker is worker]:
            self._drop(running)
            self._run_again(running, "its worker died twice")
            del running.execution

    # Watching descriptors

    def _watch_worker(self, worker: Worker) -> None:
        self._selector.register(worker.control, selectors.EVENT_READ, worker)

    def _watch_processes(self, running: _Running) -> None:
        for process in running.execution.processes:
            events = selectors.EVENT_WRITE if process.has_unsent else 0
            matters = running.execution.needs_answers or process.sends_much
            if matters and not process.abandoned and not process.has_closed:
                events |= selectors.EVENT_READ
            self._set_watched_events(process, events)

    def _set_watched_events(self, process: Process, events: int) -> None:
        """Watch a channel for `events` and no others."""
        if process.watched_events == events:
            return
        for event, fd in ((selectors.EVENT_READ, process.incoming), (selectors.EVENT_WRITE, process.outgoing)):
            if event & events & ~process.watched_events:
                self._selector.register(fd, event, process)
            elif event & process.watched_events & ~events:
                self._selector.unregister(fd)
        process.watched_events = events

    # Time

    def _tick(self) -> None:
        now = monotonic()
        for worker in [worker for worker in self.pool.workers if worker.is_overdue]:
            self._remove_dead_worker(worker)
        for worker in self.pool.find_expired(running.worker for running in self._running):
            self._selector.unregister(worker.control)
            self.pool.retire(worker)
        for running in list(self._running):
            if running not in self._running:
                continue  # just removed with its worker
            if running.execution.is_done and not running.done_at:
                running.done_at = now
            lingers = running.done_at and now - running.done_at > _LINGER_S
            if running.ticket.batch.is_cancelled or lingers:
                running.execution.abort()
            elif not running.execution.is_done:
                self._measure(running, now)

    def _measure(self, running: _Running, now: float) -> None:
        execution = running.execution

        def step() -> None:
            for process in list(execution.processes):
                execution.on_readable(process)
            active = execution.active
            if not execution.is_done and not active.is_cpu_requested and now - active.started > _MEASURE_AFTER_S:
                active.is_cpu_requested = True  # one request at a time: a zygote that hangs must not be flooded
                running.worker.request_cpu_time(active.number)

        self._advance(running, step)
