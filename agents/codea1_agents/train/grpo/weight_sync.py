"""The driver's part of the hand-over of weights: it takes pieces from a learner and sends each to all samplers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import ray

from codea1_agents.train.grpo.failures import StaleWeights
from codea1_agents.train.grpo.handover import HandoverPlan, Piece, PieceNames, piece_of, plan_of
from codea1_agents.train.grpo.runner_map import CaughtErrors

_R = TypeVar("_R")


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
