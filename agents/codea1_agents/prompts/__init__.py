"""Prompts of language models: the wordings (`*.toml`) and their conversion to chat messages."""

from __future__ import annotations

from codea1_agents.prompts.messages import Message, folded_system, merged, plain_text
from codea1_agents.prompts.templates import Prompts, View, load_prompts

__all__ = ["Message", "Prompts", "View", "folded_system", "load_prompts", "merged", "plain_text"]
