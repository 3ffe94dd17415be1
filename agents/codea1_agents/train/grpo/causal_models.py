"""Causal language models of `transformers` as trainings load them. Needs no Ray."""

from __future__ import annotations

from typing import Any

import torch

from codea1_agents.models.model_files import loading_errors, require_model
from codea1_agents.train.grpo.adapters import without_wrapper


def load_causal_model(path: str, dtype: str = "float32") -> Any:
    """Return a causal language model in evaluation mode.

    Raises:
        UserError: there is no model, or it cannot be loaded.
    """
    from transformers import AutoModelForCausalLM  # noqa: PLC0415  -- slow to import

    place = require_model("grpo", path)
    with loading_errors(f"model {path!r}"):
        return AutoModelForCausalLM.from_pretrained(place, dtype=getattr(torch, dtype)).eval()


def empty_causal_model(path: str) -> Any:
    """Return the same model as `load_causal_model`, with parameters on the current device that hold nothing yet."""
    from transformers import AutoConfig, AutoModelForCausalLM  # noqa: PLC0415  -- slow to import

    with loading_errors(f"model {path!r}"):
        config = AutoConfig.from_pretrained(require_model("grpo", path))
        return AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()


def load_generation_config(path: str) -> Any:
    """Return the settings of generation that come with a model; None if none do."""
    from transformers import GenerationConfig  # noqa: PLC0415  -- slow to import

    try:
        return GenerationConfig.from_pretrained(require_model("grpo", path))
    except OSError:
        return None


def autocast(device: torch.device | str, dtype: str) -> torch.autocast:
    """Return a context that computes in a data type, such as `bfloat16`; empty: in the types of the tensors."""
    return torch.autocast(torch.device(device).type, dtype=getattr(torch, dtype or "float32"), enabled=bool(dtype))


def checkpoint_activations(model: Any) -> None:
    """Let a model compute its activations again in the backward pass, while it is in training mode."""
    base = without_wrapper(model)
    renamed = getattr(base, "activation_checkpointing_enable", None)
    if renamed is not None:
        renamed(activation_checkpointing_kwargs={"use_reentrant": False})
    else:  # its name in older versions
        base.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
