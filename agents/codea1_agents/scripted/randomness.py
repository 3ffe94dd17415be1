"""The generators of scripted agents."""

from __future__ import annotations

import zlib

import numpy as np


def generator(seed: int, owner: str) -> np.random.Generator:
    """Return a generator that depends on the seed and on its owner's name alone.

    So two agents that are given the same seed do not draw the same numbers.

    Args:
        seed: non-negative.
        owner: e.g. the class name.

    Raises:
        ValueError: the seed is negative.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(zlib.crc32(owner.encode()),)))


class SeededAgent:
    """An agent with a generator of its own."""

    def reset(self, seed: int) -> None:
        """Start a new sequence of draws."""
        self._rng = generator(seed, type(self).__name__)
