"""Prompts of language models: the wordings (`*.toml`) and their conversion to chat messages."""

from __future__ import annotations

from codea1_agents.prompts.templates import (
    Message,
    Prompts,
    View,
    folded_system,
    load_prompts,
    merged,
    plain_text,
)

__all__ = ["Message", "Prompts", "View", "folded_system", "load_prompts", "merged", "plain_text"]
