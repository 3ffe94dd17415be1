"""The memory that a model needs to sample and to train in one role, by the arithmetic of `train.sizing`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from codea1_agents.models.model_facts import ModelFacts
from codea1_agents.models.shapes import ModelShape, UnknownShape, shape_of
from codea1_agents.train.grpo.model_settings import DTYPES, LoraSettings, ModelSettings
from codea1_agents.train.sizing.learning import LearnedModule, MicroBatch, learner_parts
from codea1_agents.train.sizing.sampling import SampledModule


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
    dtype = facts.dtype if facts.dtype in DTYPES else "float32"
    sampled = SampledModule(shape, ModelSettings(model, sampling_dtype=dtype), prompt + reply, ModelMemory.ROWS)
    batch = MicroBatch.of(1, prompt, reply)
    return ModelMemory(
        sampling=sampled.weights + sampled.rows * sampled.longest * sampled.token_bytes,
        training=_learner_bytes(shape, ModelSettings(model), batch),
        training_lora=_learner_bytes(shape, ModelSettings(model, lora=LoraSettings()), batch),
    )


def _learner_bytes(shape: ModelShape, settings: ModelSettings, batch: MicroBatch) -> int:
    module = LearnedModule(shape, settings, True, True, batch, settings.logits_at_once)
    return sum(part.n_bytes for part in learner_parts([module], n_learners=1, is_on_gpu=True))
