"""What the driver has its runners do: roll out an iteration, and take the learners' weights."""

from __future__ import annotations

import gc
import pickle
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from threading import Thread
from typing import Any, Generic, Self, TypeVar

import ray
from ray.exceptions import RayError
from ray.util.queue import Queue

from codea1_agents.train.failures import RunnerFailed, StaleWeights
from codea1_agents.train.grpo.env_runner import ScoredTree, TreeEnvRunner
from codea1_agents.train.grpo.progress import Part, Report, unreported
from codea1_agents.train.grpo.rollout import RolloutTimes, Task
from codea1_agents.train.grpo.weights import HandoverPlan, Piece, PieceNames, piece_of, plan_of
from codea1_env.errors import UserError

_MAX_ROUNDS = 4  # how often the items of lost runners are distributed again
_T = TypeVar("_T")
_R = TypeVar("_R")


def map_over_runners(
    algorithm: Any,
    items: Sequence[_T],
    work_on: Callable[[Sequence[_T]], Callable[[Any], _R]],
    is_done: Callable[[_T], bool],
) -> Iterator[_R]:
    """Yield one result per runner; items that a lost runner leaves undone are distributed again, at most three times.

    Args:
        algorithm: a `GRPO`.
        items: to be distributed.
        work_on: returns what a runner does with its items; pickled for remote runners.
        is_done: whether an item is done, given all results so far.

    Raises:
        RunnerFailed: a remote runner raised an exception. RLlib itself would log it and continue without that runner.
    """
    for _ in range(_MAX_ROUNDS):
        remaining = [item for item in items if not is_done(item)]
        if not remaining:
            return
        if algorithm.env_runner_group.healthy_worker_ids():
            yield from map_once(algorithm, remaining, work_on)
            algorithm.restore_env_runners(algorithm.env_runner_group)
        elif algorithm.env_runner is not None:
            yield work_on(remaining)(algorithm.env_runner)
        else:
            algorithm.restore_env_runners(algorithm.env_runner_group)


def map_once(
    algorithm: Any, items: Sequence[_T], work_on: Callable[[Sequence[_T]], Callable[[Any], _R]]
) -> Iterator[_R]:
    """Yield one result per remote runner; a lost runner yields nothing, and is not started again.

    Args:
        algorithm: a `GRPO`.
        items: to be distributed.
        work_on: as in `map_over_runners`.

    Raises:
        RunnerFailed: as in `map_over_runners`.
    """
    group = algorithm.env_runner_group
    ids = group.healthy_worker_ids()
    if not ids:
        return  # RLlib would take none as all
    work = [CaughtErrors(_Packed(work_on(items[start :: len(ids)]))) for start in range(len(ids))]
    outcomes = deque(group.foreach_env_runner(work, remote_worker_ids=ids, local_env_runner=False))
    while outcomes:  # frees the bytes of a result as soon as it is unpacked
        outcome = outcomes.popleft()
        if outcome.fault:
            raise RunnerFailed(f"a runner failed in iteration {algorithm.iteration + 1}: {outcome.fault}")
        with _without_collection():
            result: _R = pickle.loads(outcome.result)
        yield result


@contextmanager
def _without_collection() -> Iterator[None]:
    """Suspend the collection of garbage, which takes most of the time in which many objects are made."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@dataclass(frozen=True, slots=True)
class _Packed(Generic[_R]):
    """Work whose result travels as bytes: Ray itself would unpack it with collections of garbage."""

    work: Callable[[Any], _R]

    def __call__(self, runner: Any) -> bytes:
        return pickle.dumps(self.work(runner), pickle.HIGHEST_PROTOCOL)


@dataclass(frozen=True, slots=True)
class Outcome(Generic[_R]):
    """What a runner returned, or its exception."""

    result: _R | None
    fault: str = ""
    """The exception, as a text."""
    user_error: UserError | None = None
    """The exception, if the user can mend it."""


@dataclass(frozen=True, slots=True)
class CaughtErrors(Generic[_R]):
    """Work that returns its exceptions instead of raising them: RLlib hides what a remote runner raises."""

    work: Callable[[Any], _R]

    def __call__(self, runner: Any) -> Outcome[_R]:
        """Return the outcome of the work with a runner."""
        try:
            return Outcome(self.work(runner))
        except UserError as error:
            return Outcome(None, str(error), error)
        except Exception as error:  # noqa: BLE001  whatever it is, the driver raises it
            return Outcome(None, f"{type(error).__name__}: {error}")


@dataclass(frozen=True, slots=True)
class RolledOut:
    """The trees of one iteration. It can be pickled."""

    tasks: tuple[Task, ...]
    trees: tuple[ScoredTree, ...]
    """In the order of their tasks, without those that no runner returned."""
    times: tuple[RolloutTimes, ...]
    """Of the runners."""
    iteration: int
    """After how many iterations of learning the weights were sent that sampled the trees."""

    @property
    def n_lost(self) -> int:
        """Tasks without a tree."""
        return len(self.tasks) - len(self.trees)


@dataclass(frozen=True, slots=True)
class _Result:
    """The trees of one runner."""

    trees: list[ScoredTree]
    times: RolloutTimes


@dataclass(frozen=True, slots=True)
class _Work:
    """The work of one runner; it can be pickled."""

    tasks: Sequence[Task]
    report: Report

    def __call__(self, runner: TreeEnvRunner) -> _Result:
        return _Result(runner.scored_trees(self.tasks, self.report), runner.rollout_times())


def roll_out(
    algorithm: Any, tasks: Sequence[Task], report: Report = unreported, *, done: Sequence[_Result] = ()
) -> RolledOut:
    """Return the trees of some tasks; wait for them, and start lost runners again.

    Args:
        algorithm: a `GRPO`.
        tasks: of the iteration.
        report: called when a part of some problems is done.
        done: what runners have returned already.

    Raises:
        RunnerFailed: a runner raised an exception, or all were lost.
    """
    results = list(done)
    trees = {each.tree.task.number: each for result in results for each in result.trees}
    for result in map_over_runners(algorithm, tasks, partial(_Work, report=report), lambda task: task.number in trees):
        results.append(result)
        trees.update({each.tree.task.number: each for each in result.trees})
    if tasks and not trees:
        raise RunnerFailed(f"no runner returned a tree in iteration {algorithm.iteration + 1}: all were lost")
    return RolledOut(
        tuple(tasks),
        tuple(trees[number] for number in sorted(trees)),
        tuple(result.times for result in results),
        algorithm.iteration,
    )


class RolloutsAhead:
    """Rollouts by remote runners that go on while the driver does something else.

    A thread waits for them. It starts no runner again, as that would need the learners.
    """

    def __init__(self, algorithm: Any, tasks: Sequence[Task]) -> None:
        """Begin rollouts; the remote runners have the weights already.

        Args:
            algorithm: a `GRPO`.
            tasks: of the rollouts.
        """
        self._algorithm, self._tasks, self._iteration = algorithm, tuple(tasks), algorithm.iteration
        self._rolled: RolledOut | None = None
        self._is_awaited = False
        executor = ThreadPoolExecutor(1, thread_name_prefix="codea1-rollouts")
        work_on = partial(_Work, report=unreported)
        self._results: Future[list[_Result]] = executor.submit(lambda: list(map_once(algorithm, self._tasks, work_on)))
        executor.shutdown(wait=False)

    @classmethod
    def of(cls, rolled: RolledOut) -> Self:
        """Return rollouts that have ended."""
        ended = cls.__new__(cls)
        ended._rolled, ended._is_awaited = rolled, True
        return ended

    @property
    def is_over(self) -> bool:
        """Whether no runner works on them, and what lost runners left undone has its runners."""
        return self._is_awaited

    def finish(self) -> RolledOut:
        """Return the trees; wait for them. Tasks that a lost runner left undone are rolled out now.

        Raises:
            RunnerFailed: a runner raised an exception, or all were lost.
        """
        if self._rolled is None:
            done = self._results.result()
            self._is_awaited = True
            found = roll_out(self._algorithm, self._tasks, done=done)
            self._rolled = replace(found, iteration=self._iteration)
        return self._rolled


@dataclass(frozen=True, slots=True)
class Receivers:
    """The runners that get weights.

    Args:
        local: the runner in this process; None: there is none, or it gets no weights.
        group: RLlib's group of runners.
        ids: of remote runners in the group.
    """

    local: Any
    group: Any
    ids: Sequence[int]


def send_weights(learners: Any, receivers: Receivers) -> None:
    """Send the learners' weights to samplers and wait until they have verified them.

    At any time there is one piece: in this process, and if there are remote runners, once more in Ray's object store,
    where each node has one copy.

    Args:
        learners: RLlib's learner group.
        receivers: a remote runner that is lost meanwhile gets no more pieces and is no error.

    Raises:
        StaleWeights: a runner does not have the weights.
        UserError: the engine of a remote runner did not start.
    """
    plan: HandoverPlan = _from_first(learners, plan_of)
    for names in plan.pieces:
        _send_piece(learners, receivers, names)
    _on_runners(receivers, lambda runner: runner.use_weights(plan.version))


def _send_piece(learners: Any, receivers: Receivers, names: PieceNames) -> None:
    piece: Piece = _from_first(learners, partial(piece_of, which=names))
    if receivers.local is not None:
        receivers.local.receive_weights(piece)
    if receivers.ids:
        reference = ray.put(piece)
        del piece
        _on_remote_runners(receivers, lambda runner: runner.receive_weights(ray.get(reference)))


def _from_first(learners: Any, get: Callable[[Any], _R | None]) -> _R:
    """Return what the first learner returns; RLlib has no public way to call it alone, so the others return None."""
    found = [result.get() for result in learners.foreach_learner(get)]
    first: _R = next(each for each in found if each is not None)
    return first


def _on_runners(receivers: Receivers, work: Callable[[Any], None]) -> None:
    if receivers.local is not None:
        work(receivers.local)
    _on_remote_runners(receivers, work)


def _on_remote_runners(receivers: Receivers, work: Callable[[Any], None]) -> None:
    if not receivers.ids:
        return
    outcomes = receivers.group.foreach_env_runner(
        CaughtErrors(work), remote_worker_ids=list(receivers.ids), local_env_runner=False
    )
    for outcome in outcomes:
        if outcome.user_error is not None:
            raise outcome.user_error
        if outcome.fault:
            raise StaleWeights(f"a runner does not have the learner's weights: {outcome.fault}")


@dataclass(frozen=True, slots=True)
class RemoteReport:
    """Sends reports from a Ray process to a `Relay`; it can be pickled."""

    queue: Queue

    def __call__(self, part: Part, n: int) -> None:
        """Send a report. It may be lost."""
        with suppress(RayError):
            self.queue.put_nowait((part, n))


class Relay:
    """Passes the reports of Ray processes on to a function, in a thread."""

    def __init__(self, report: Report) -> None:
        self._queue = Queue(actor_options={"num_cpus": 0})
        self.remote = RemoteReport(self._queue)
        self._report = report
        self._thread = Thread(target=self._pass_on, name="progress", daemon=True)
        self._thread.start()

    def _pass_on(self) -> None:
        with suppress(RayError):
            while (received := self._queue.get()) is not None:
                self._report(*received)

    def close(self) -> None:
        """End the thread."""
        with suppress(RayError):
            self._queue.put_nowait(None)
        self._thread.join()
        self._queue.shutdown(force=True)
