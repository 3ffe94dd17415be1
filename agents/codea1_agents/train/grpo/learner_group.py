"""Groups of learners: calls that notice a lost learner, and checkpoints of learners that hold parts of the models.

Learners work in step, so the loss of one ends them all, and at once. RLlib waits for each call to end. A learner that
is dead, stopped or cut off would make it wait for ever: for itself, or for the others, which wait for it. Here, the
first call that ends bounds the wait for the rest.

The state of a sharded learner is a part; so all are called, and each writes its part. A checkpoint is in the format of
`torch.distributed.checkpoint`: nothing is gathered, and another number of learners can read it. All learners write into
one folder, so on several nodes it must be on a file system that they share.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import ray
import torch.distributed.checkpoint as dcp
from ray.exceptions import RayActorError, RayError
from ray.rllib.core import COMPONENT_LEARNER
from ray.rllib.core.learner.learner_group import LearnerGroup
from ray.rllib.utils.actor_manager import FaultTolerantActorManager
from torch import Tensor, empty, from_numpy, tensor, zeros_like
from torch.distributed import DistError
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.metadata import TensorStorageMetadata

from codea1_agents.train.failures import LearnerLost
from codea1_agents.train.grpo.causal_models import untied
from codea1_agents.train.grpo.settings import SHARDS
from codea1_agents.train.grpo.weights import array_of
from codea1_env.errors import CodeA1Error

_NUMBER = "weights_seq_no"
_GRACE_S = 10.0
"""Seconds in which the others answer after a learner has failed. They see a lost connection in less."""


class WatchedLearnerGroup(LearnerGroup):  # type: ignore[misc]  # Ray has no types
    """RLlib's group of learners. Each call raises `LearnerLost` if a learner is lost; then all of them have ended."""

    def __init__(self, *, config: Any, **settings: Any) -> None:
        """Start and build the learners.

        Raises:
            LearnerLost: one of them died.
        """
        try:
            super().__init__(config=config, **settings)
            if self.is_remote:
                self._worker_manager = LearnerCalls(self._workers, config.learner_timeout_s)
        except RayActorError as error:
            _end(self._workers or ())
            raise LearnerLost("a learner died before it was ready") from error

    def each(self, works: Sequence[Callable[[Any], Any]]) -> list[Any]:
        """Return what the learners return, one work for each; a local learner has one."""
        if self.is_local:
            return [work(self._learner) for work in works]
        return [each.get() for each in self._worker_manager.foreach_actor(list(works))]

    def __del__(self) -> None:
        """Shut down, but not at the end of the interpreter, when Ray's modules are gone."""
        if not sys.is_finalizing():
            super().__del__()


class LearnerCalls(FaultTolerantActorManager):  # type: ignore[misc]  # Ray has no types
    """Calls learners.

    Args:
        learners: their actors, by rank.
        timeout_s: seconds that the others have after one has answered, and that a call of one alone has.
    """

    def __init__(self, learners: Sequence[Any], timeout_s: float) -> None:
        super().__init__(learners)
        self._timeout_s = timeout_s
        self._places = ray.get([each.apply.remote(_place) for each in learners])

    def _fetch_result(
        self, *, remote_actor_ids: list[int], remote_calls: list[Any], timeout_seconds: float | None, **more: Any
    ) -> Any:
        """Return what RLlib does.

        Raises:
            LearnerLost: a learner has ended, does not answer, or raised an exception of its own.
            CodeA1Error: it was raised by a learner.
            OSError: likewise.
        """
        if timeout_seconds is None:
            self._wait(dict(zip(remote_calls, remote_actor_ids, strict=True)))
            timeout_seconds = 0.0
        return super()._fetch_result(
            remote_actor_ids=remote_actor_ids, remote_calls=remote_calls, timeout_seconds=timeout_seconds, **more
        )

    def _wait(self, rank_of: Mapping[Any, int]) -> None:
        silent = list(rank_of)
        failed: dict[int, Exception] = {}
        begun = time.monotonic()
        deadline = math.inf if len(silent) == len(self.actors()) else begun + self._timeout_s

        def left_s() -> float | None:
            return None if deadline == math.inf else max(0.0, deadline - time.monotonic())

        while silent and (answered := ray.wait(silent, num_returns=1, timeout=left_s())[0]):
            (call,) = answered
            silent.remove(call)
            error = _error_of(call)
            if error is not None:
                failed[rank_of[call]] = error
            deadline = min(deadline, time.monotonic() + (_GRACE_S if error is not None else self._timeout_s))
        if failed or silent:
            _end(self.actors().values())
            is_late = not failed or time.monotonic() - begun >= self._timeout_s
            raise self._fault(failed, sorted(rank_of[call] for call in silent), is_late=is_late)

    def _fault(self, failed: Mapping[int, Exception], silent: Sequence[int], *, is_late: bool) -> Exception:
        """Return the error that says which learner failed, as far as the answers show it.

        Args:
            failed: errors by rank.
            silent: ranks of those that did not answer.
            is_late: whether some may have waited for as long as allowed.
        """
        own = {rank: getattr(failed[rank], "cause", None) or failed[rank] for rank in sorted(failed)}
        died = [rank for rank, error in own.items() if isinstance(error, RayActorError)]
        raised = {rank: error for rank, error in own.items() if rank not in died and not _is_of_another_learner(error)}
        for error in raised.values():
            if isinstance(error, CodeA1Error | OSError):
                return error
        faults = [f"{self._name(rank)} died" for rank in died]
        faults += [f"{self._name(rank)} failed: {_sentence(error)}" for rank, error in raised.items()]
        if not raised:  # otherwise they wait for those that raised something
            faults += [f"{self._name(rank)} did not answer" for rank in silent]
        if not faults:
            faults = [f"{self._name(rank)} lost the others: {_sentence(error)}" for rank, error in own.items()]
        is_limit = is_late and not (died or raised)
        limit = f" (cluster.learner_timeout_s is {self._timeout_s:g})" if is_limit else ""
        lost = LearnerLost(", and ".join(faults) + limit)
        lost.__cause__ = next(iter(failed.values()), None)
        return lost

    def _name(self, rank: int) -> str:
        return f"the learner of rank {rank} ({self._places[rank]})"


def _end(learners: Iterable[Any]) -> None:
    """End learners, also those that wait for others or are stopped."""
    for learner in learners:
        ray.kill(learner)


def _place(_: Any) -> str:
    return f"process {os.getpid()} on {ray.util.get_node_ip_address()}"


def _error_of(call: Any) -> Exception | None:
    try:
        ray.get(call)
    except RayError as error:
        raised: Exception = error
        return raised
    return None


def _is_of_another_learner(error: Exception) -> bool:
    """Return whether a collective has failed. Errors of gloo have no class of their own."""
    return isinstance(error, DistError) or "/gloo/" in str(error)


def _sentence(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:300]


class ShardedLearnerGroup(WatchedLearnerGroup):
    """RLlib's group of learners, whose states are parts."""

    def get_state(
        self, components: str | Collection[str] | None = None, *, inference_only: bool = False, **more: Any
    ) -> dict[str, Any]:
        """Return gathered weights if `components` names them (`learner/rl_module`); otherwise nothing.

        The first learner holds the gathered weights of one model after the other, this process those of all: prefer
        checkpoints, and `RunnerPool.send_weights` for pieces.
        """
        wanted = self._get_subcomponents(COMPONENT_LEARNER, components)
        if not wanted:
            return {}
        states = self.foreach_learner(lambda learner: learner.get_state(wanted, inference_only=inference_only, **more))
        return {COMPONENT_LEARNER: next(iter(states)).get()}

    def get_checkpointable_components(self) -> list[tuple[str, Any]]:
        """Return nothing: RLlib would call one learner for each."""
        return []

    def save_to_path(self, path: Any = None, **settings: Any) -> str:
        """Write a checkpoint, of which each learner writes its part."""
        place = Path(super().save_to_path(path, **settings))
        self._on_all(partial(_save, folder=str(place / SHARDS)))
        return str(place)

    def restore_from_path(self, path: Any, **settings: Any) -> None:
        """Load a checkpoint of any number of learners."""
        super().restore_from_path(path, **settings)
        self._on_all(partial(_load, folder=str(Path(path) / SHARDS)))

    def _on_all(self, work: Any) -> None:
        for result in self.foreach_learner(work):
            result.get()


def whole_state(folder: Path, module: str, scratch: Path | None = None) -> dict[str, Any]:
    """Return the weights of a module from a checkpoint's `SHARDS`, as `CausalLMModule.get_state` does.

    They are on disk and mapped into memory, which holds the pages in use only.

    Args:
        folder: of the parts.
        module: name of the module.
        scratch: folder for nameless files with the weights, which end with the arrays; None: that of temporary files.

    Raises:
        KeyError: there is no such module.
        Exception: of `torch.distributed.checkpoint`, for damaged files.
    """
    prefix = f"models.{module}."
    stored = dcp.FileSystemReader(folder).read_metadata().state_dict_metadata
    state = {
        name: _on_disk(metadata, scratch)
        for name, metadata in stored.items()
        if name.startswith(prefix) and isinstance(metadata, TensorStorageMetadata)
    }
    if not state:
        raise KeyError(module)
    dcp.load(state, checkpoint_id=folder, no_dist=True)
    return {name.removeprefix(prefix): array_of(tensor) for name, tensor in state.items()}


def _on_disk(metadata: TensorStorageMetadata, scratch: Path | None) -> Tensor:
    """Return an empty tensor in a file that has no name and ends with the tensor."""
    nothing = empty(0, dtype=metadata.properties.dtype)
    if not metadata.size.numel():
        return nothing.reshape(metadata.size)
    n_bytes = metadata.size.numel() * nothing.element_size()
    with tempfile.TemporaryFile(dir=scratch) as file:
        mapped = np.memmap(file, np.uint8, "w+", shape=(n_bytes,))
    return from_numpy(mapped).view(metadata.properties.dtype).reshape(metadata.size)


@contextmanager
def _file_errors(folder: str) -> Iterator[None]:
    """Convert PyTorch's error about some learners, which is no Exception, into an OSError about the files.

    Raises:
        OSError: a file cannot be read or written; it names the first fault.
    """
    try:
        yield
    except CheckpointException as error:
        fault = next((each[0] for each in error.failures.values()), error)
        text = " ".join(str(fault).split())
        raise OSError(f"{folder}: {type(fault).__name__}: {text[:200]}") from None


def _save(learner: Any, folder: str) -> None:
    with _file_errors(folder):
        dcp.save(_parts(learner), checkpoint_id=folder)


def _load(learner: Any, folder: str) -> None:
    parts = _parts(learner)
    with _file_errors(folder):
        dcp.load(parts, checkpoint_id=folder)
    learner._weights_seq_no = int(parts[_NUMBER])


def _parts(learner: Any) -> dict[str, Any]:
    """Return this learner's parts of everything that a checkpoint holds; loading changes them in place."""
    modules = {name: learner.module[name].unwrapped() for name in sorted(learner.module.keys())}
    return {
        _NUMBER: tensor(learner._weights_seq_no),
        "models": {name: untied(module.model) for name, module in modules.items()},
        "optimizers": {
            name: _optimizer_parts(module.model, learner.get_optimizer(name))
            for name, module in modules.items()
            if learner.should_module_be_updated(name)
        },
    }


def _optimizer_parts(model: Any, optimizer: Any) -> dict[str, dict[str, Tensor]]:
    """Return the states of AdamW by parameter; before its first step, they are 0."""
    parts: dict[str, dict[str, Tensor]] = {}
    for name, parameter in untied(model).items():
        if not parameter.requires_grad:
            continue
        state: Mapping[str, Tensor] = optimizer.state[parameter]
        if not state:
            optimizer.state[parameter] = state = {
                "step": tensor(0.0),
                "exp_avg": zeros_like(parameter),
                "exp_avg_sq": zeros_like(parameter),
            }
        parts[name] = dict(state)
    return parts
