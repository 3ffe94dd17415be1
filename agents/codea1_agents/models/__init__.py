"""Agents whose replies language models write: over HTTP, in this process, or in an inference engine.

Importing these modules needs none of the optional packages; making an agent does.
"""

from __future__ import annotations

__all__: list[str] = []
