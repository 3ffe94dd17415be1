"""Learners of sharded models. The state of one learner is a part; so all are called, and each writes its part.

A checkpoint is in the format of `torch.distributed.checkpoint`: nothing is gathered, and another number of learners can
read it. All learners write into one folder, so on several nodes it must be on a file system that they share.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch.distributed.checkpoint as dcp
from ray.rllib.core import COMPONENT_LEARNER
from torch import Tensor, empty, from_numpy, tensor, zeros_like
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.metadata import TensorStorageMetadata

from codea1_agents.train.grpo.adapters import untied
from codea1_agents.train.grpo.handover import array_of
from codea1_agents.train.grpo.learner_calls import WatchedLearnerGroup
from codea1_agents.train.grpo.sharding_choice import SHARDS

_NUMBER = "weights_seq_no"


class ShardedLearnerGroup(WatchedLearnerGroup):
    """RLlib's group of learners, whose states are parts."""

    def get_state(
        self, components: str | Collection[str] | None = None, *, inference_only: bool = False, **more: Any
    ) -> dict[str, Any]:
        """Return gathered weights if `components` names them (`learner/rl_module`); otherwise nothing.

        The first learner holds the gathered weights of one model after the other, this process those of all: prefer
        checkpoints, and `weight_sync` for pieces.
        """
        wanted = self._get_subcomponents(COMPONENT_LEARNER, components)
        if not wanted:
            return {}
        found = self.foreach_learner(lambda learner: learner.get_state(wanted, inference_only=inference_only, **more))
        return {COMPONENT_LEARNER: next(iter(found)).get()}

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
        name: _on_disk(found, scratch)
        for name, found in stored.items()
        if name.startswith(prefix) and isinstance(found, TensorStorageMetadata)
    }
    if not state:
        raise KeyError(module)
    dcp.load(state, checkpoint_id=folder, no_dist=True)
    return {name.removeprefix(prefix): array_of(tensor) for name, tensor in state.items()}


def _on_disk(found: TensorStorageMetadata, scratch: Path | None) -> Tensor:
    """Return an empty tensor in a file that has no name and ends with the tensor."""
    nothing = empty(0, dtype=found.properties.dtype)
    if not found.size.numel():
        return nothing.reshape(found.size)
    n_bytes = found.size.numel() * nothing.element_size()
    with tempfile.TemporaryFile(dir=scratch) as file:
        mapped = np.memmap(file, np.uint8, "w+", shape=(n_bytes,))
    return from_numpy(mapped).view(found.properties.dtype).reshape(found.size)


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
    found: dict[str, dict[str, Tensor]] = {}
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
        found[name] = dict(state)
    return found
