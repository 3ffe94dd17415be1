"""The memory that tensors and arrays take while something runs, counted in bytes and not measured on the process."""

from __future__ import annotations

import tracemalloc
import weakref
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveBytes(TorchDispatchMode):
    """Counts the bytes of tensors that operations make, while they live, and those that Python and numpy allocate."""

    def __init__(self) -> None:
        super().__init__()
        self._now, self._peak, self._live = 0, 0, set[int]()

    def __enter__(self) -> LiveBytes:
        tracemalloc.start()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._peak += tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

    @property
    def peak(self) -> int:
        """The most bytes at a time, of both kinds; complete after the block."""
        return self._peak

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        given = {each.untyped_storage().data_ptr() for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)}
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor) and tensor.untyped_storage().data_ptr() not in given | self._live:
                self._count(tensor.untyped_storage())
        return result

    def _count(self, storage: Any) -> None:
        place, n_bytes = storage.data_ptr(), storage.nbytes()
        self._live.add(place)
        self._now += n_bytes
        self._peak = max(self._peak, self._now)
        weakref.finalize(storage, self._freed, place, n_bytes)

    def _freed(self, place: int, n_bytes: int) -> None:
        self._live.discard(place)
        self._now -= n_bytes
