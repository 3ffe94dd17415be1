"""Modules and batches that several test modules want."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium as gym

from codea1_agents.grpo.model_settings import ModelSettings
from codea1_agents.grpo.rl_module import CausalLMModule

_SPACE = gym.spaces.Discrete(2)


def module_of(folder: str, *, inference_only: bool = False, **settings: Any) -> CausalLMModule:
    """A module as RLlib would build it."""
    config = replace(ModelSettings(folder), **settings).to_dict()
    return CausalLMModule(
        observation_space=_SPACE, action_space=_SPACE, model_config=config, inference_only=inference_only
    )


def some_batch(rows: int = 4, prompt: int = 6, response: int = 5) -> dict[str, Any]:
    """A learner's batch of tokens that small vocabularies have, padded as the real ones are."""
    import torch

    generator = torch.Generator().manual_seed(0)
    lengths = torch.arange(rows)
    return {
        "prompt_ids": torch.randint(3, 14, (rows, prompt), generator=generator),
        "prompt_mask": torch.arange(prompt) >= lengths.clamp(max=prompt - 1).unsqueeze(-1),
        "response_ids": torch.randint(3, 14, (rows, response), generator=generator),
        "response_mask": torch.arange(response) < (response - lengths.clamp(max=response - 1)).unsqueeze(-1),
    }
