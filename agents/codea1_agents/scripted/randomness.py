"""Random generators of scripted agents."""

from __future__ import annotations

import zlib

import numpy as np


def generator(seed: int, owner: str) -> np.random.Generator:
    """Return a generator that depends only on the seed and on its owner's name.

    So two different agents with the same seed draw different numbers.

    Args:
        seed: not negative.
        owner: for example the class name.

    Raises:
        ValueError: the seed is negative.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(zlib.crc32(owner.encode()),)))


class SeededAgent:
    """An agent with its own generator, `_rng`."""

    def reset(self, seed: int) -> None:
        """Start a new sequence of draws."""
        self._rng = generator(seed, type(self).__name__)
