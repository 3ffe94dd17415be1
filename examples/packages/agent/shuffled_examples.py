"""An agent in a package of its own: copy the folder, change the names, and replace `act`."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any


class ShuffledExamples:
    """Sends some of the statement's examples, in an order that its seed decides."""

    plays = "tester"

    def __init__(self, *, most: int = 4) -> None:
        """Make a tester.

        Args:
            most: examples per suite.
        """
        self._most = most
        self._random = random.Random()

    def reset(self, seed: int) -> None:
        """Begin an episode."""
        self._random = random.Random(seed)

    def act(self, observation: Mapping[str, Any], info: Mapping[str, Any]) -> str:
        """Return a suite."""
        examples = [line for line in observation["examples"].splitlines() if line.startswith("assert ")]
        self._random.shuffle(examples)
        return "\n".join(examples[: min(self._most, info["tests_per_suite"])])
