"""A key-value cache that allocates ahead and writes tokens in place, where `transformers` copies all earlier ones."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from transformers.cache_utils import DynamicCache, DynamicLayer

_MIN_GROWTH = 64
"""Smallest number of positions that a buffer grows by."""


def preallocated_cache(model: Any) -> DynamicCache:
    """Return an empty cache for a model. Layers that are not plain full attention stay those of `transformers`."""
    cache = DynamicCache(config=model.config)
    cache.layers = [_PreallocatedLayer() if type(layer) is DynamicLayer else layer for layer in cache.layers]
    return cache


class _PreallocatedLayer(DynamicLayer):  # type: ignore[misc]  # transformers is not read for types
    """Keeps `keys` and `values`, (rows, heads, positions, size), as views of longer buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: Tensor
        self.values: Tensor
        self._buffers: tuple[Tensor, Tensor] | None = None

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Append positions and return all keys and values."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        begin = self.get_seq_length()
        end = begin + key_states.shape[-2]
        if self._buffers is None or end > self._buffers[0].shape[-2]:
            self._buffers = (self._grown(self.keys, key_states, end), self._grown(self.values, value_states, end))
        keys, values = self._buffers
        keys[..., begin:end, :] = key_states
        values[..., begin:end, :] = value_states
        self.keys, self.values = keys[..., :end, :], values[..., :end, :]
        return self.keys, self.values

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Select rows by number; a number may occur several times."""
        super().reorder_cache(beam_idx)
        self._buffers = None

    @staticmethod
    def _grown(held: Tensor, like: Tensor, end: int) -> Tensor:
        rows, heads, _, size = like.shape
        buffer = like.new_empty(rows, heads, end + max(_MIN_GROWTH, end // 2), size)
        if held.numel():
            buffer[..., : held.shape[-2], :] = held
        return buffer
