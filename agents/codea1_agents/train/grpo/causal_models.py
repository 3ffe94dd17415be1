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


def has_plain_head(model: Any) -> bool:
    """Return whether a model's logits are what its output layer makes of its last hidden states.

    Some models change them afterwards, by a soft cap or a scale. The log-probabilities of those need the whole model.
    """
    base = without_wrapper(model)
    body, head = base.base_model, base.get_output_embeddings()
    if head is None or body is base:
        return False
    given = {"input_ids": torch.arange(2, device=base.device).unsqueeze(0), "use_cache": False}
    with torch.no_grad():
        try:
            logits = head(body(**given)[0])
        except (RuntimeError, TypeError):  # there is a layer between the two
            return False
        return bool(torch.equal(logits, base(**given).logits))


def checkpoint_activations(model: Any) -> None:
    """Let a model compute its activations again in the backward pass, while it is in training mode."""
    base = without_wrapper(model)
    renamed = getattr(base, "activation_checkpointing_enable", None)
    if renamed is not None:
        renamed(activation_checkpointing_kwargs={"use_reentrant": False})
    else:  # its name in older versions
        base.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
