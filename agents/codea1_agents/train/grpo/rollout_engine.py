"""Who samples a module's responses, behind one interface; and proof that it samples with the weights it should."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from codea1_agents.train.grpo.model_settings import ModelSettings
from codea1_agents.train.grpo.sampling import Response, SamplingRules, sample_responses


class RolloutEngine(Protocol):
    """Samples responses with the weights of one module."""

    @property
    def room(self) -> int | None:
        """Most tokens of a prompt and its response together; None: unknown."""

    def sample(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[Sequence[int]],
        ends: Iterable[int],
        rules: SamplingRules,
    ) -> list[Response]:
        """Return one response per prompt; see `sample_responses`.

        Raises:
            StaleWeights: the last hand-over has failed.
        """

    def take_weights(self, version: int) -> None:
        """Sample with the module's present weights from here on.

        Args:
            version: their number in the training.

        Raises:
            StaleWeights: the engine's log-probabilities are not those of the weights.
        """

    def close(self) -> None:
        """Let go of memory; the engine cannot be asked afterwards."""


class TransformersEngine:
    """Samples with the module's own model, so that there is nothing to hand over."""

    def __init__(self, model: Any) -> None:
        self._model = model

    @property
    def room(self) -> int | None:
        """As the model's configuration says."""
        return getattr(self._model.config, "max_position_embeddings", None)

    def sample(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[Sequence[int]],
        ends: Iterable[int],
        rules: SamplingRules,
    ) -> list[Response]:
        """Return one response per prompt; see `sample_responses`."""
        return sample_responses(self._model, prompts, seeds, end_tokens=ends, pad_token=0, rules=rules)

    def take_weights(self, version: int) -> None:
        """Nothing: they are the module's."""

    def close(self) -> None:
        """Nothing: the memory is the module's."""


def load_engine(settings: ModelSettings, model: Any) -> RolloutEngine:
    """Return the engine that a module's settings name.

    Args:
        settings: of the module.
        model: the module's own, which takes the learner's weights.

    Raises:
        MissingExtra: the engine is not installed.
        UserError: it does not start.
    """
    if settings.rollout_engine == "transformers":
        return TransformersEngine(model)
    from codea1_agents.train.grpo.vllm_engine import VllmEngine  # noqa: PLC0415  -- heavy, and an extra

    return VllmEngine(settings, model)
