"""GRPO on RLlib: two language models trained against each other in one environment.

from codea1_agents.grpo import GRPO, GRPOConfig
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codea1_env.errors import MissingExtra

if TYPE_CHECKING:
    from codea1_agents.grpo.algorithm import GRPO
    from codea1_agents.grpo.config import GRPOConfig
    from codea1_agents.grpo.model_settings import ModelSettings

__all__ = ["GRPO", "GRPOConfig", "ModelSettings"]

_PLACES = {"GRPO": "algorithm", "GRPOConfig": "config", "ModelSettings": "model_settings"}


def __getattr__(name: str) -> Any:
    """Import what is asked for; torch and Ray take seconds."""
    from importlib import import_module  # noqa: PLC0415

    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("ray", "torch", "transformers"):
            raise
        raise MissingExtra.of("training with GRPO", "rllib") from error
