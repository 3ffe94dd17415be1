"""The interface of the engines that sample the responses of a module, and the engine `transformers`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from codea1_agents.train.grpo.model_settings import ModelSettings
from codea1_agents.train.grpo.sampling import Response, Rows, SamplingRules, sample_responses
from codea1_env.errors import CodeA1Error


class RolloutEngine(Protocol):
    """Samples responses with the weights of one module."""

    @property
    def context_length(self) -> int | None:
        """Most tokens of a prompt and its response together; None: unknown."""

    def sample(self, prompts: Rows, seeds: Rows, ends: Iterable[int], rules: SamplingRules) -> list[Response]:
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

    def sample(self, prompts: Rows, seeds: Rows, ends: Iterable[int], rules: SamplingRules) -> list[Response]:
        """Return one response per prompt; see `sample_responses`."""
        return sample_responses(self._model, prompts, seeds, end_tokens=ends, pad_token=0, rules=rules)

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


class MissingEngine:
    """Replaces an engine that cannot be started on this machine; raises the reason at the first hand-over.

    If the constructor of a runner raised it, RLlib would log a traceback and continue without the runner.
    """

    context_length = None

    def __init__(self, error: CodeA1Error) -> None:
        self._error = error

    def sample(self, prompts: Rows, seeds: Rows, ends: Iterable[int], rules: SamplingRules) -> list[Response]:
        """Raise the reason why the engine cannot be started."""
        raise self._error

    def load_weights(self, version: int) -> None:
        """Raise the reason why the engine cannot be started."""
        raise self._error

    def sleep(self) -> None:
        """Do nothing."""

    def wake(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def load_engine(
    settings: ModelSettings, model: Any, *, gpus_per_runner: float = 0.0, n_engines: int = 1, sleeps: bool = False
) -> RolloutEngine:
    """Return the engine that the settings of a module name.

    Args:
        settings: of the module.
        model: of the module; it receives the learner's weights.
        gpus_per_runner: GPUs of the runner, whose memory its engines share.
        n_engines: engines of the runner, this one included.
        sleeps: whether the engine has to sleep at times.

    Raises:
        MissingExtra: the engine is not installed.
        UserError: it does not start.
    """
    if settings.rollout_engine == "transformers":
        return TransformersEngine(model)
    from codea1_agents.train.grpo.vllm_engine import VllmEngine  # noqa: PLC0415  -- heavy, and an extra

    return VllmEngine(settings, model, gpus_per_runner=gpus_per_runner, n_engines=n_engines, sleeps=sleeps)
