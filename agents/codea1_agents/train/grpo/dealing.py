"""Work dealt out to the runners: each gets a share; what a lost one owes is dealt again, what one fails at is said."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from codea1_agents.train.grpo.failures import RunnerFailed

_MAX_ROUNDS = 4  # of dealing out, before what is still owed is left out
_T = TypeVar("_T")
_R = TypeVar("_R")


def dealt(
    algorithm: Any,
    items: Sequence[_T],
    work_on: Callable[[Sequence[_T]], Callable[[Any], _R]],
    is_done: Callable[[_T], bool],
) -> Iterator[_R]:
    """Yield what each runner makes of its share; what a lost one owes is dealt again, a few times.

    Args:
        algorithm: a `GRPO`.
        items: what is to be shared out.
        work_on: a share -> what a runner is to do with it; travels to remote runners.
        is_done: whether an item is owed no more, given all that was yielded.

    Raises:
        RunnerFailed: a remote runner raised an exception. RLlib itself would log it and go on without.
    """
    for _ in range(_MAX_ROUNDS):
        owed = [item for item in items if not is_done(item)]
        if not owed:
            return
        yield from _dealt_once(algorithm, owed, work_on)


def _dealt_once(
    algorithm: Any, items: Sequence[_T], work_on: Callable[[Sequence[_T]], Callable[[Any], _R]]
) -> Iterator[_R]:
    """Yield what each runner makes of its share; one that is lost yields nothing, and is started again."""
    group = algorithm.env_runner_group
    ids = group.healthy_worker_ids()
    if not ids:
        if algorithm.env_runner is not None:
            yield work_on(items)(algorithm.env_runner)
        return
    shares = [_Guarded(work_on(items[start :: len(ids)])) for start in range(len(ids))]
    for outcome in group.foreach_env_runner(shares, remote_worker_ids=ids, local_env_runner=False):
        if outcome.fault:
            raise RunnerFailed(f"a runner failed in iteration {algorithm.iteration + 1}: {outcome.fault}")
        yield outcome.result
    algorithm.restore_env_runners(group)


@dataclass(frozen=True, slots=True)
class _Outcome(Generic[_R]):
    result: _R | None
    fault: str = ""


@dataclass(frozen=True, slots=True)
class _Guarded(Generic[_R]):
    """Work whose exceptions are told, not raised: RLlib hides what a remote runner raises."""

    work: Callable[[Any], _R]

    def __call__(self, runner: Any) -> _Outcome[_R]:
        try:
            return _Outcome(self.work(runner))
        except Exception as error:  # noqa: BLE001  whatever it is, it is told
            return _Outcome(None, f"{type(error).__name__}: {error}")
