"""What one module is made of."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["ModelSettings"]


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """A causal language model and how it is computed."""

    path: str
    """A directory or hub id of a causal language model."""
    sampling_dtype: str = "float32"
    """Of the weights that sample; the learner's are float32 always, as small steps vanish in fewer bits."""
    autocast: str = ""
    """Type that the learner computes in, e.g. `bfloat16`; empty: float32."""
    gradient_checkpointing: bool = False
    with_reference: bool = True
    """Whether the divergence from the model as it was loaded is part of the loss."""
    with_entropy: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return a plain dictionary, as RLlib's `model_config` wants it."""
        return asdict(self)
