"""The memory that a model needs to sample and to train, by arithmetic: weights, gradients, optimiser, cache."""

from __future__ import annotations

from dataclasses import dataclass

from codea1_agents.models.model_facts import ModelFacts

_ROWS = 64  # replies that are sampled together
_FLOAT = 4
_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
_LORA_SHARE = 0.01  # of the parameters, about that of rank 16


@dataclass(frozen=True, slots=True)
class ModelMemory:
    """Bytes of one model in one role, without activations and logits."""

    sampling: int
    """Weights as they are stored, and the cache of 64 replies at the longest length."""
    training: int
    """Weights, gradients, AdamW's two moments and the frozen reference, all in float32."""
    training_lora: int
    """The same with adapters: weights in float32, which are the reference, too."""


def memory_of(facts: ModelFacts, tokens: int) -> ModelMemory:
    """Return the memory of a model.

    Args:
        facts: about the model.
        tokens: longest prompt and reply together.
    """
    n = facts.n_parameters
    return ModelMemory(
        sampling=n * _BYTES.get(facts.dtype, _FLOAT) + _ROWS * tokens * facts.cache_bytes,
        training=n * 5 * _FLOAT,
        training_lora=round(n * _FLOAT * (1 + 4 * _LORA_SHARE)),
    )
