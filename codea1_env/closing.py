"""What is closed when its `with` block ends."""

from __future__ import annotations

from typing import Self


class Closing:
    """A context manager that gives itself and ends with `close()`."""

    def close(self) -> None:
        """Let go of what is held."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
