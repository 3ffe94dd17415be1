"""Text spaces that hold what language models really write."""

from __future__ import annotations

import string
from typing import Any

from gymnasium.spaces import Text


class UnicodeText(Text):
    """Any `str` of at most `max_length` characters; samples are short printable ASCII.

    `gymnasium.spaces.Text` needs the whole alphabet as a set: a second to build and 51 MB to pickle for Unicode.
    """

    def __init__(self, max_length: int) -> None:
        super().__init__(max_length=max_length, min_length=0, charset=string.printable)

    def contains(self, x: Any) -> bool:
        """Return whether `x` is a string that is short enough."""
        return isinstance(x, str) and len(x) <= self.max_length

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Return up to 80 random printable characters."""
        if mask is not None or probability is not None:
            return super().sample(mask=mask, probability=probability)
        length = int(self.np_random.integers(0, min(80, self.max_length) + 1))
        letters = self.np_random.integers(0, len(string.printable), size=length)
        return "".join(string.printable[i] for i in letters)

    def __repr__(self) -> str:
        return f"UnicodeText({self.max_length})"

    def __reduce__(self) -> tuple[type[UnicodeText], tuple[int], dict[str, Any]]:
        return (type(self), (self.max_length,), {"_np_random": self._np_random})
