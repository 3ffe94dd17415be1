"""The hand-over of weights from a learner to samplers: in pieces of bounded size, and verified by exact checksums.

The learner sends each tensor in the data type of its samplers. After the last piece, the receiver compares the checksum
of each of its own tensors with that of the tensor that was sent. Nothing is compared within a tolerance.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from codea1_agents.train.failures import StaleWeights
from codea1_agents.train.grpo.causal_models import is_first_learner, untied, whole_tensor
from codea1_agents.train.grpo.settings import ModelSettings

_MB = 2**20
_SUMMED = 2**22
_SPREAD = -7046029254386353131  # 2^64 by the golden ratio: its multiples spread over all bits


@dataclass(frozen=True, slots=True)
class PieceNames:
    """Which tensors one piece holds."""

    module: str
    names: tuple[str, ...]
    is_first: bool
    """Whether a new hand-over begins with it."""


@dataclass(frozen=True, slots=True)
class HandoverPlan:
    """All pieces of one hand-over, in order."""

    version: int
    """Number of the weights in the training."""
    pieces: tuple[PieceNames, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """A few tensors of one module on their way to samplers, as numpy arrays, which Ray shares between processes without
    a copy."""

    module: str
    arrays: Mapping[str, Any]
    """By name; see `array_of`."""
    checksums: Mapping[str, int]
    """By name; see `checksum`."""
    is_first: bool


# The learner's side


def plan_of(learner: Any) -> HandoverPlan | None:
    """Return the plan of a learner's weights; None unless it is the first learner, as all hold the same weights.

    A piece has at most `handover_piece_mb` of its module's settings; a larger tensor is a piece of its own.
    """
    if not is_first_learner():
        return None
    pieces: list[PieceNames] = []
    for name in sorted(learner.module.keys()):
        module = learner.module[name].unwrapped()  # DDP wraps modules
        dtype = sent_type(module.settings)
        for tensors in in_pieces(untied(module.model).items(), module.settings.handover_piece_mb, dtype):
            pieces.append(PieceNames(name, tuple(tensors), is_first=not pieces))
    return HandoverPlan(int(learner._weights_seq_no), tuple(pieces))


def piece_of(learner: Any, which: PieceNames) -> Piece | None:
    """Return the tensors with these names, as samplers get them; None unless it is the first learner.

    All learners must call this at the same time: they gather sharded tensors.
    """
    module = learner.module[which.module].unwrapped()  # DDP wraps modules
    if not is_first_learner() and not module.settings.sharded:
        return None
    own, dtype = untied(module.model), sent_type(module.settings)
    sent = [as_sent(own[name], dtype) for name in which.names]
    whole = {name: whole_tensor(tensor).cpu() for name, tensor in zip(which.names, sent, strict=True)}
    if not is_first_learner():
        return None
    arrays = {name: array_of(tensor) for name, tensor in whole.items()}
    return Piece(which.module, arrays, {name: checksum(tensor) for name, tensor in whole.items()}, which.is_first)


# The sampler's side


@dataclass(slots=True)
class WeightReceiver:
    """Copies pieces into models and verifies that each tensor arrived.

    Args:
        models: of the modules that sample, by module.
        settings: of the same modules.
    """

    models: Mapping[str, Any]
    settings: Mapping[str, ModelSettings]
    _expected: dict[str, dict[str, int]] = field(default_factory=dict)
    _is_complete: bool = False

    def require_complete(self) -> None:
        """Raise StaleWeights unless the last hand-over was completed."""
        if not self._is_complete:
            raise StaleWeights("no hand-over of weights to this runner has been completed")

    def receive(self, piece: Piece) -> None:
        """Copy a piece into its model.

        Raises:
            StaleWeights: the model has no such tensor, or one of another shape.
        """
        self._is_complete = False
        if piece.is_first:
            self._expected = {}
        own = untied(self.models[piece.module])
        for name, array in piece.arrays.items():
            try:
                copy_into(own[name], tensor_of(array))
            except (KeyError, RuntimeError) as error:
                raise StaleWeights(f"{piece.module!r} has no tensor {name} of this shape: {error}") from error
        self._expected.setdefault(piece.module, {}).update(piece.checksums)

    def verify(self, version: int) -> None:
        """Compare the checksums of all tensors with those that the learner sent.

        Raises:
            StaleWeights: a tensor did not arrive, or is another one.
        """
        for module, model in self.models.items():
            dtype = sent_type(self.settings[module])
            held = {name: checksum(as_sent(tensor, dtype)) for name, tensor in untied(model).items()}
            require_equal(f"{module!r} after the hand-over of weights {version}", self._expected.get(module, {}), held)
        self._expected, self._is_complete = {}, True


def require_equal(where: str, sent: Mapping[str, int], held: Mapping[str, int]) -> None:
    """Raise StaleWeights unless two mappings from names to checksums are equal."""
    names = sent.keys() | held.keys()
    wrong = sorted(name for name in names if sent.get(name) != held.get(name))
    if wrong:
        named = ", ".join(wrong[:3]) + (" and others" if len(wrong) > 3 else "")
        raise StaleWeights(f"{where}: {len(wrong)} of {len(names)} tensors are not those that were sent: {named}")


# Tensors


def sent_type(settings: ModelSettings) -> torch.dtype:
    """Return the data type in which the weights of a module are sent. Adapters stay float32, in samplers as well."""
    return torch.float32 if settings.lora is not None else getattr(torch, settings.sampling_dtype)


def as_sent(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """Return a tensor in the data type in which it is sent. Whole numbers keep theirs."""
    return tensor.detach().to(dtype) if tensor.is_floating_point() else tensor.detach()


def in_pieces(
    tensors: Iterable[tuple[str, Tensor]], most_mb: float, dtype: torch.dtype | None = None
) -> Iterator[dict[str, Tensor]]:
    """Group named tensors, in order, into pieces of at most `most_mb` MB (2^20 bytes); a larger tensor is alone.

    Args:
        tensors: may be a generator. It is not read further than the first tensor of the next piece.
        most_mb: size of a piece.
        dtype: data type in which the sizes are measured; None: the tensors' own.
    """
    piece: dict[str, Tensor] = {}
    n_bytes = 0
    for name, tensor in tensors:
        size = tensor.numel() * (dtype.itemsize if dtype and tensor.is_floating_point() else tensor.element_size())
        if piece and n_bytes + size > most_mb * _MB:
            yield piece
            piece, n_bytes = {}, 0
        piece[name] = tensor
        n_bytes += size
    if piece:
        yield piece


def checksum(tensor: Tensor) -> int:
    """Return the CRC-32 of a tensor's bytes, wherever they are."""
    plain = tensor.detach().cpu().contiguous().reshape(-1)
    return zlib.crc32(plain.view(torch.uint8).numpy()) if plain.numel() else 0


def sum_in_place(tensor: Tensor) -> int:
    """Return what a tensor is compared by that does not leave its device: `weighted_sum` on a GPU, else `checksum`.

    Both sides of a comparison must have it on the same kind of device.
    """
    return weighted_sum(tensor.detach().contiguous().reshape(-1)) if tensor.is_cuda else checksum(tensor)


def weighted_sum(tensor: Tensor) -> int:
    """Return the sum of a tensor's elements, as whole numbers, times odd weights that depend on the place, modulo 2^64.

    The sum is exact, so it does not depend on the order in which a device adds. Any change of one element changes it,
    because an odd weight has an inverse; two or more changes cancel each other only by chance.

    Args:
        tensor: shape (n,), contiguous, on any device. At most 24 bytes for each of 2^22 elements are needed beside it.
    """
    whole = tensor.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()])
    total = torch.zeros((), dtype=torch.int64, device=tensor.device)
    for start in range(0, len(whole), _SUMMED):
        part = whole[start : start + _SUMMED].to(torch.int64, copy=True)
        weights = torch.arange(start + 1, start + len(part) + 1, device=tensor.device).mul_(_SPREAD)
        total += part.mul_(weights.bitwise_xor_(weights >> 31).bitwise_or_(1)).sum()
    return int(total)


def array_of(tensor: Tensor) -> Any:
    """Return a tensor as a numpy array, which may share its memory; bfloat16, which numpy lacks, as its bits."""
    plain = tensor.detach().cpu()
    if plain.dtype is torch.bfloat16:
        return {"bfloat16": plain.view(torch.uint16).numpy()}
    return plain.numpy()


def tensor_of(array: Any, *, copies: bool = True) -> Tensor:
    """Return what `array_of` returned as a tensor, which shares its memory unless it is copied."""
    if isinstance(array, Mapping):
        return tensor_of(array["bfloat16"], copies=copies).view(torch.bfloat16)
    return torch.from_numpy(np.array(array) if copies else array)


def copy_into(own: Tensor, value: Tensor) -> None:
    """Copy a tensor into another one of the same shape, which keeps its data type.

    Raises:
        RuntimeError: the shapes differ.
    """
    if own.shape != value.shape:
        raise RuntimeError(f"shape {tuple(value.shape)} instead of {tuple(own.shape)}")
    with torch.no_grad():
        own.copy_(value)
