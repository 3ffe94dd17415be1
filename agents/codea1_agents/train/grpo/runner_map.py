"""Map work over RLlib's env runners: each runner gets a part, and the part of a lost runner goes to the others."""

from __future__ import annotations

import gc
import pickle
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from codea1_agents.train.grpo.failures import RunnerFailed
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
