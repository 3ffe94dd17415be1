"""A base class for objects that are closed at the end of a `with` block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self


class Closing:
    """A context manager that returns itself and calls `close()` at the end of the block."""

    def close(self) -> None:
        """Release all resources."""
        raise NotImplementedError

    @contextmanager
    def close_on_error(self) -> Iterator[None]:
        """Close it if the block raises; otherwise it stays open."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
