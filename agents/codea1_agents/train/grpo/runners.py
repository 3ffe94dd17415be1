"""What the driver has its runners do: roll out an iteration, and take the learners' weights.

RLlib continues without a runner that raises an exception. Here, what a runner raises comes back as a value and ends the
iteration; only the work of a runner that is lost goes to the others.
"""

from __future__ import annotations

import gc
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from threading import Thread
from typing import Any, TypeVar

import ray
from ray.exceptions import RayError
from ray.rllib.utils.metrics import ENV_RUNNER_RESULTS, EVALUATION_RESULTS
from ray.util.queue import Queue

from codea1_agents.train.failures import RunnerFailed, StaleWeights
from codea1_agents.train.grpo.batch import StoredResponse
from codea1_agents.train.grpo.env_runner import TreeEnvRunner
from codea1_agents.train.grpo.metrics import TreeFacts, episode_figures, mean_figures
from codea1_agents.train.grpo.progress import Done, Report, ignore_report
from codea1_agents.train.grpo.rollout import RolledTree, RolloutResult, Task
from codea1_agents.train.grpo.weights import HandoverPlan, Piece, piece_of, plan_of
from codea1_env.errors import UserError
from codea1_env.problems import load_problems

_FIRST_EVALUATED = 1 << 32  # number of an evaluation's first task, which no training reaches
MAX_ROUNDS = 4
"""How often the items of lost runners are distributed again."""
_T = TypeVar("_T")
_R = TypeVar("_R")

RolledOut = RolloutResult  # as checkpoints of a run with overlap name it that were written before 2026-11-29


@dataclass(frozen=True, slots=True)
class RunnerPool:
    """The runners of a group, in an iteration: they do work in parts, and take the learners' weights."""

    group: Any
    """RLlib's group of the runners."""
    learners: Any
    """RLlib's group of the learners."""
    restore: Callable[[Any], object]
    """Starts the lost runners of a group again, with the learners' weights."""
    iteration: int
    """Iterations of learning so far."""

    def roll_out(
        self, tasks: Sequence[Task], report: Report = ignore_report, *, done: Sequence[RolloutResult[TreeFacts]] = ()
    ) -> RolloutResult[TreeFacts]:
        """Return what is known of the trees of some tasks; wait for them, and start lost runners again.

        Args:
            tasks: of the iteration.
            report: called when replies have ended and when problems are judged.
            done: what runners have returned already.

        Raises:
            RunnerFailed: a runner raised an exception, or all were lost.
        """
        results = list(done)
        trees = {tree.number: tree for result in results for tree in result.trees}
        for result in self.map(tasks, partial(roll_out_here, report), lambda task: task.number in trees):
            results.append(result)
            trees.update({tree.number: tree for tree in result.trees})
        if tasks and not trees:
            raise RunnerFailed(f"no runner returned a tree in iteration {self.iteration + 1}: all were lost")
        return RolloutResult(
            tuple(trees[number] for number in sorted(trees)),
            max((result.generate_s for result in results), default=0.0),
            max((result.judge_s for result in results), default=0.0),
            tuple(metrics for result in results for metrics in result.metrics),
            tuple(tasks),
            self.iteration,
        )

    def map(
        self, items: Sequence[_T], work: Callable[[Sequence[_T], Any], _R], is_done: Callable[[_T], bool]
    ) -> Iterator[_R]:
        """Yield one result per runner; items that a lost runner leaves undone are distributed again, three times.

        Others do them, if there are any. Lost runners are started again when weights are sent the next time.

        Args:
            items: to be distributed.
            work: what a runner does with its items; pickled for remote runners.
            is_done: whether an item is done, given all results so far.

        Raises:
            RunnerFailed: a remote runner raised an exception.
        """
        for _ in range(MAX_ROUNDS):
            remaining = [item for item in items if not is_done(item)]
            if not remaining:
                return
            if self.group.healthy_worker_ids():
                yield from self.map_once(remaining, work)
            elif self.group.local_env_runner is not None:
                yield work(remaining, self.group.local_env_runner)
                continue
            # A new runner has the learners' weights; others may have older ones.
            if not self.group.healthy_worker_ids():
                self.restore(self.group)

    def map_once(self, items: Sequence[_T], work: Callable[[Sequence[_T], Any], _R]) -> Iterator[_R]:
        """Yield one result per remote runner; a lost runner yields nothing, and is not started again."""
        ids = self.group.healthy_worker_ids()
        for outcome in self._outcomes([partial(work, items[start :: len(ids)]) for start in range(len(ids))], ids):
            self._require_success(outcome)
            with _without_collection():
                result: _R = _Unpickler(outcome).load()
            yield result

    def release_samplers(self) -> None:
        """Let the engines of remote runners release the devices on which the learners work now.

        Raises:
            RunnerFailed: a runner raised an exception.
        """
        ids = self.group.healthy_worker_ids()
        for outcome in self._outcomes([TreeEnvRunner.sleep] * len(ids), ids):
            self._require_success(outcome)

    def send_weights(self, ids: Sequence[int] | None = None) -> None:
        """Send the learners' weights to samplers and wait until they have verified them.

        Two pieces exist at a time, since all weights together may not fit a host's memory: one that is taken from the
        learners, and one that is received. For remote runners it is also in Ray's object store, one copy per node.

        Args:
            ids: of remote runners; None: all, and the local one. One that is lost meanwhile gets no more pieces and is
                no error.

        Raises:
            StaleWeights: a runner does not have the weights.
            UserError: the engine of a remote runner did not start.
        """
        local = self.group.local_env_runner if ids is None else None
        ids = self.group.healthy_worker_ids() if ids is None else ids
        plan: HandoverPlan = self._call_first_learner(plan_of)
        takes = [partial(self._call_first_learner, partial(piece_of, which=names)) for names in plan.pieces]
        with ThreadPoolExecutor(1, thread_name_prefix="codea1-weights") as executor:
            coming = executor.submit(takes[0])
            for following in (*takes[1:], None):
                piece: Piece = coming.result()
                if following is not None:
                    coming = executor.submit(following)  # the learners work on it while the runners receive this one
                if local is not None:
                    local.receive_weights(piece)
                reference = ray.put(piece) if ids else None
                del piece
                self._hand_over(partial(_receive, reference), ids)
                del reference
        if local is not None:
            local.use_weights(plan.version)
        self._hand_over(lambda runner: runner.use_weights(plan.version), ids)

    def _call_first_learner(self, get: Callable[[Any], _R | None]) -> _R:
        """Return what the first learner returns; RLlib has no public way to call it alone: the others return None."""
        results = [result.get() for result in self.learners.foreach_learner(get)]
        first: _R = next(result for result in results if result is not None)
        return first

    def _hand_over(self, work: Callable[[Any], None], ids: Sequence[int]) -> None:
        for outcome in self._outcomes([work] * len(ids), ids):
            if outcome.user_error is not None:
                raise outcome.user_error
            if outcome.fault:
                raise StaleWeights(f"a runner does not have the learner's weights: {outcome.fault}")

    def _outcomes(self, works: Sequence[Callable[[Any], Any]], ids: Sequence[int]) -> Iterator[_Outcome]:
        """Yield the outcomes of one work per remote runner; a lost runner yields nothing."""
        if not ids:
            return  # RLlib would take none as all
        works = [partial(_catch, work) for work in works]
        outcomes = deque(self.group.foreach_env_runner(works, remote_worker_ids=list(ids), local_env_runner=False))
        while outcomes:  # frees the bytes of a result as soon as it is unpacked
            yield outcomes.popleft()

    def _require_success(self, outcome: _Outcome) -> None:
        if outcome.fault:
            raise RunnerFailed(f"a runner failed in iteration {self.iteration + 1}: {outcome.fault}")


def _receive(reference: Any, runner: TreeEnvRunner) -> None:
    runner.receive_weights(ray.get(reference))


def roll_out_here(report: Report, tasks: Sequence[Task], runner: TreeEnvRunner) -> RolloutResult[TreeFacts]:
    """Return what is known of the trees of some tasks, which a runner rolls out and which stay on its node."""
    rolled = runner.roll_out(tasks, report)
    stays = not runner.worker_index and not runner.config.num_learners  # who learns from it is in this process
    store = (lambda tree: tree) if stays else ray.put
    facts = tuple(TreeFacts.of(tree, runner.settings, store) for tree in rolled.trees)
    metrics = runner.metrics.reduce()
    return RolloutResult(facts, rolled.generate_s, rolled.judge_s, (metrics,) if metrics else ())


# Trees


def fetch(stored: Mapping[int, Any]) -> dict[int, RolledTree]:
    """Return stored trees by the numbers of their tasks, without those whose runner or node is lost.

    Args:
        stored: references by number, or the trees themselves.
    """
    trees = {number: tree for number, tree in stored.items() if not isinstance(tree, ray.ObjectRef)}
    references = {number: tree for number, tree in stored.items() if number not in trees}
    try:
        with _without_collection():
            trees |= dict(zip(references, ray.get(list(references.values())), strict=True))
    except RayError:
        for number, reference in references.items():
            with suppress(RayError):
                trees[number] = ray.get(reference)
    return {number: trees[number] for number in stored if number in trees}


class StoredTrees(Sequence[RolledTree]):
    """Trees on the nodes of their runners; what is read is fetched. Without those whose runner or node is lost."""

    def __init__(self, trees: Iterable[TreeFacts] = ()) -> None:
        self._stored = {tree.number: tree.stored for tree in trees}

    def __len__(self) -> int:
        """Return their number, with those that are lost."""
        return len(self._stored)

    def __getitem__(self, place: Any) -> Any:
        """Return a tree, or a tuple of those in a slice."""
        numbers = list(self._stored)
        if not isinstance(place, slice):
            tree = self._stored[numbers[place]]
            return ray.get(tree) if isinstance(tree, ray.ObjectRef) else tree
        return tuple(fetch({number: self._stored[number] for number in numbers[place]}).values())

    def __iter__(self) -> Iterator[RolledTree]:
        """Iterate over all trees, which are fetched at once."""
        return iter(self[:])


def take(learner: Any, rows: Sequence[StoredResponse], stored: Mapping[int, Any]) -> tuple[Any, frozenset[int]]:
    """Let a learner fetch the responses that it is to learn from, so that it needs no runner any more.

    Args:
        learner: it is called there.
        rows: the responses, as they are planned.
        stored: references to their trees, by number.

    Returns:
        Ray's reference to the responses, which stay with the learner; and the numbers of trees that are lost.
    """
    settings, trees = learner.config.settings(), fetch(stored)
    lost = frozenset(stored.keys() - trees.keys())
    if lost:
        return None, lost
    responses = {number: tuple(tree.trained_responses(settings)) for number, tree in trees.items()}
    return ray.put([row.planned(responses[row.task][row.number]) for row in rows]), lost


def evaluate_episodes(algorithm: Any, runners: Any) -> tuple[dict[str, float], int, int]:
    """Evaluate on `evaluation_duration` problems: the default of `evaluation(custom_evaluation_function=...)`.

    They are the first problems of the configuration of the evaluation, and each evaluation uses the same seeds. Its
    figures are those of rollouts, which do not depend on the number of runners.

    Args:
        algorithm: a `GRPO`.
        runners: those of evaluations; None: those of the training, with its settings.

    Returns:
        The figures, the steps of environments, and the replies.
    """
    config = algorithm.config if runners is None else algorithm.evaluation_config
    problems = load_problems(config.problem_source)
    numbers = range(config.evaluation_duration)
    tasks = [Task(_FIRST_EVALUATED + number, problems[number % len(problems)].id) for number in numbers]
    rolled = algorithm.pool(runners).roll_out(tasks)
    algorithm.metrics.aggregate(rolled.metrics, key=(EVALUATION_RESULTS, ENV_RUNNER_RESULTS))
    figures = {**mean_figures(rolled.trees), **episode_figures(rolled.trees)}
    algorithm.log_evaluation(figures)
    return figures, sum(tree.env_steps for tree in rolled.trees), sum(tree.n_responses for tree in rolled.trees)


class RolloutsAhead:
    """Rollouts by remote runners that go on while the driver does something else.

    A thread waits for them. It starts no runner again, as that would need the learners.
    """

    def __init__(self, pool: RunnerPool, tasks: Sequence[Task], rolled: RolloutResult[TreeFacts] | None = None) -> None:
        """Begin rollouts; the remote runners have the weights already.

        Args:
            pool: the runners.
            tasks: of the rollouts.
            rolled: what came of them, if they have ended; then nothing begins.
        """
        self._pool, self._tasks, self._rolled = pool, tuple(tasks), rolled
        self.is_over = rolled is not None
        """Whether no runner works on them, and what lost runners left undone has its runners."""
        if rolled is None:
            executor = ThreadPoolExecutor(1, thread_name_prefix="codea1-rollouts")
            work = partial(roll_out_here, ignore_report)
            self._results: Future[list[RolloutResult[TreeFacts]]] = executor.submit(
                lambda: list(pool.map_once(tasks, work))
            )
            executor.shutdown(wait=False)

    def finish(self) -> RolloutResult[TreeFacts]:
        """Return what is known of the trees; wait for them. Tasks that a lost runner left undone are rolled out now.

        Raises:
            RunnerFailed: a runner raised an exception, or all were lost.
        """
        if self._rolled is None:
            done = self._results.result()
            self.is_over = True
            self._rolled = self._pool.roll_out(self._tasks, done=done)
        return self._rolled


# What runners return


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a runner returned, or its exception."""

    result: bytes = b""
    """Pickled: Ray itself would unpack it with collections of garbage."""
    references: tuple[Any, ...] = ()
    """Ray's, which are in the result by number: Ray counts only those that it sends itself."""
    fault: str = ""
    """The exception, as a text."""
    user_error: UserError | None = None
    """The exception, if the user can mend it."""


class _Pickler(pickle.Pickler):
    """Leaves Ray's references out."""

    def __init__(self) -> None:
        self.file, self.references = BytesIO(), list[Any]()
        super().__init__(self.file, pickle.HIGHEST_PROTOCOL)

    def persistent_id(self, each: Any) -> int | None:
        """Return the number of a reference; None for anything else."""
        if not isinstance(each, ray.ObjectRef):
            return None
        self.references.append(each)
        return len(self.references) - 1


class _Unpickler(pickle.Unpickler):
    """Unpickles an outcome."""

    def __init__(self, outcome: _Outcome) -> None:
        super().__init__(BytesIO(outcome.result))
        self.persistent_load = outcome.references.__getitem__  # type: ignore[method-assign]


def _catch(work: Callable[[Any], Any], runner: Any) -> _Outcome:
    try:
        pickler = _Pickler()
        pickler.dump(work(runner))
        return _Outcome(pickler.file.getvalue(), tuple(pickler.references))
    except UserError as error:
        return _Outcome(fault=str(error), user_error=error)
    except Exception as error:  # noqa: BLE001  whatever it is, the driver raises it
        return _Outcome(fault=f"{type(error).__name__}: {error}")


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


# Progress


@dataclass(frozen=True, slots=True)
class RemoteReport:
    """Sends reports from a Ray process to a `Relay`; it can be pickled. A report may be lost, which changes nothing."""

    queue: Queue

    def __call__(self, done: Done) -> None:
        """Send a report."""
        with suppress(RayError):
            self.queue.put_nowait(done)


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
                self._report(received)

    def close(self) -> None:
        """End the thread."""
        with suppress(RayError):
            self._queue.put_nowait(None)
        self._thread.join()
        self._queue.shutdown(force=True)
