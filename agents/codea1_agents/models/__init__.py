"""Agents that reply with a language model: over HTTP, in this process, or in an inference engine.

These modules import without the optional packages; making an agent needs them.
"""

from __future__ import annotations

__all__: list[str] = []
