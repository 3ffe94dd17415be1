"""How many threads torch computes with, for as long as something lasts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def torch_threads(n: int) -> Iterator[None]:
    """Let torch use `n` threads within, 0: as many as before; one thread gives the same bits on every machine."""
    import torch  # noqa: PLC0415  heavy

    before = torch.get_num_threads()
    torch.set_num_threads(n or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
