"""The rollouts of an iteration: sampled while the driver waits, or ahead, while the learners work."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

from codea1_agents.train.grpo.env_runner import ScoredTree, TreeEnvRunner
from codea1_agents.train.grpo.failures import RunnerFailed
from codea1_agents.train.grpo.progress import Report, unreported
from codea1_agents.train.grpo.runner_map import map_once, map_over_runners
from codea1_agents.train.grpo.trees import RolloutTimes, Task


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
