"""Engines that sample the responses of a training.

`RolloutEngine` is what a runner needs of an engine. That of transformers is here, the other one in `vllm_engine`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from codea1_agents.models.sampling import OnEnd, Response, Rows, SamplingRules, sample_responses, uncounted


@dataclass(frozen=True, slots=True)
class ResponseSize:
    """What remains of a response of which nobody needs the tokens."""

    n_tokens: int
    is_cut: bool
    """As in `Response`."""


def single_seed(seed: Sequence[int]) -> int:
    """Return a seed as one number below 2**53, for engines that take a single number."""
    return int(np.random.SeedSequence(list(seed)).generate_state(1, np.uint64)[0] >> np.uint64(11))


class RolloutEngine(Protocol):
    """Samples responses with the weights of one module."""

    @property
    def context_length(self) -> int | None:
        """Most tokens of a prompt and its response together; None: unknown."""

    def sample(
        self, prompts: Rows, seeds: Rows, ends: Iterable[int], rules: SamplingRules, on_end: OnEnd = uncounted
    ) -> list[Response]:
        """Return one response per prompt; see `sample_responses`.

        Raises:
            StaleWeights: the last hand-over of weights failed.
        """

    def load_weights(self, version: int) -> None:
        """Sample with the module's present weights from now on.

        Args:
            version: number of the weights in the training.

        Raises:
            StaleWeights: the engine does not compute with these weights.
        """

    def sleep(self) -> None:
        """Release the device's memory until `wake`, for a learner on the same device."""

    def wake(self) -> None:
        """Take the device's memory again. The next `load_weights` brings the weights."""

    def close(self) -> None:
        """Release the memory. The engine samples no more."""


class TransformersEngine:
    """Samples with the module's own model, so no weights are handed over."""

    def __init__(self, model: Any) -> None:
        self._model, self._device = model, model.device

    @property
    def context_length(self) -> int | None:
        """As the model's configuration says."""
        return getattr(self._model.config, "max_position_embeddings", None)

    def sample(
        self, prompts: Rows, seeds: Rows, ends: Iterable[int], rules: SamplingRules, on_end: OnEnd = uncounted
    ) -> list[Response]:
        """Return one response per prompt; see `sample_responses`."""
        return sample_responses(self._model, prompts, seeds, end_tokens=ends, rules=rules, on_end=on_end)

    def load_weights(self, version: int) -> None:
        """Do nothing: the weights are the module's."""

    def sleep(self) -> None:
        """Move the module's model to the host."""
        self._model.to("cpu")

    def wake(self) -> None:
        """Move it back."""
        self._model.to(self._device)

    def close(self) -> None:
        """Do nothing: the memory is the module's."""
