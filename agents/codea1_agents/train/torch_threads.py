"""Sets the number of torch's threads in a context."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def torch_threads(n: int) -> Iterator[None]:
    """Let torch use `n` threads in the context; 0: as many as before. With one thread, two runs give the same bits."""
    import torch  # noqa: PLC0415  heavy

    before = torch.get_num_threads()
    torch.set_num_threads(n or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
