"""A base class for objects that are closed at the end of a `with` block."""

from __future__ import annotations

from typing import Self


class Closing:
    """A context manager that returns itself and calls `close()` at the end of the block."""

    def close(self) -> None:
        """Release all resources."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
