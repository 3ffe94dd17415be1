"""The memory that a model needs to sample and to train in one role."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from codea1_agents.models.model_facts import ModelFacts
from codea1_agents.models.shapes import UnknownShape, shape_of
from codea1_agents.train.grpo.settings import DTYPES, LoraSettings, ModelSettings
from codea1_agents.train.settings.options import ClusterOptions
from codea1_agents.train.sizing.learning import MicroBatch, SizedModule, learner_parts


@dataclass(frozen=True, slots=True)
class ModelMemory:
    """Bytes of one model in one role."""

    ROWS: ClassVar[int] = 64
    """Replies that are sampled together."""

    sampling: int
    """Weights as they are stored, and the cache of `ROWS` replies at the longest length."""
    training: int
    """A learner with the reference, whose micro-batch is one row of the longest length."""
    training_lora: int
    """The same with adapters."""


def memory_of(model: str, facts: ModelFacts, *, prompt: int, reply: int) -> ModelMemory | None:
    """Return the memory of a model; None if the arithmetic does not know its architecture.

    Args:
        model: folder or hub id.
        facts: about the model.
        prompt: tokens of the longest prompt.
        reply: tokens of the longest reply.
    """
    try:
        shape = shape_of(model)
    except UnknownShape:
        return None
    dtype: Any = facts.dtype if facts.dtype in DTYPES else "float32"
    settings = ModelSettings(model, sampling_dtype=dtype)
    row = prompt + reply
    module = SizedModule(shape, settings, MicroBatch(row, reply, row))
    return ModelMemory(
        sampling=module.sampling_weights + ModelMemory.ROWS * row * module.token_bytes,
        training=_learner_bytes(module),
        training_lora=_learner_bytes(replace(module, settings=replace(settings, lora=LoraSettings()))),
    )


def _learner_bytes(module: SizedModule) -> int:
    return sum(part.n_bytes for part in learner_parts([module], ClusterOptions(gpus_per_learner=1.0)))
