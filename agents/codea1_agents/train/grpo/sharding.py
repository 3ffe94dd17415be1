"""Sharded models: each learner holds its part of every parameter (FSDP2 of PyTorch), gathered when it is needed.

The root of the sharding is a `ResponsePass`, whose forward pass computes prompts, responses and logits in pieces.
Backbone and output layer called apart would mix gathered and sharded tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn.utils import clip_grad_norm_, get_total_norm

from codea1_agents.train.grpo.causal_models import without_wrapper
from codea1_agents.train.grpo.forward_pass import Abilities, ResponsePass


def is_first_learner() -> bool:
    """Return whether this process is the only learner, or the first of them."""
    is_alone = not (torch.distributed.is_available() and torch.distributed.is_initialized())
    return is_alone or torch.distributed.get_rank() == 0


def mesh_of_learners() -> DeviceMesh:
    """Return all learners as one row of devices. The process group exists."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return init_device_mesh(device, (torch.distributed.get_world_size(),))


def sharded(
    load: Callable[[], Any],
    empty: Callable[[], Any],
    mesh: DeviceMesh,
    *,
    prepare: Callable[[Any], object],
    policies: Mapping[str, Any],
) -> ResponsePass:
    """Return a model of which each learner holds its part. All learners call this at the same time.

    The first learner loads the model whole, in the memory of its host, and sends the others their parts, one parameter
    at a time. The others never hold it.

    Args:
        load: returns the whole model; only the first learner calls it.
        empty: returns the same model without memory, on the device `meta`.
        mesh: the learners.
        prepare: is called with the model before it is sharded.
        policies: of `policies_of`.
    """
    whole = load() if mesh.get_rank() == 0 else None
    abilities = _sent([None if whole is None else Abilities.of(whole)])
    model = empty()
    prepare(model)
    for layer in _layers(model):
        fully_shard(layer, mesh=mesh, reshard_after_forward=True, **policies)
    found = ResponsePass(model, abilities)
    fully_shard(found, mesh=mesh, reshard_after_forward=True, **policies)
    of_parts = "cpu" if isinstance(policies["offload_policy"], CPUOffloadPolicy) else mesh.device_type
    found._apply(
        lambda each: torch.empty_like(each, device=of_parts if isinstance(each, DTensor) else mesh.device_type)
    )
    _fill(found.model, whole, mesh)
    return found


def policies_of(gathering_dtype: str = "", *, is_offloaded: bool = False) -> dict[str, Any]:
    """Return how FSDP2 computes with the parts and where it keeps them, as arguments of `fully_shard`.

    Args:
        gathering_dtype: data type in which parameters are gathered, and so in which layers compute; empty: float32.
        is_offloaded: whether parts and gradients are in the host's memory.
    """
    return {
        "mp_policy": MixedPrecisionPolicy(
            param_dtype=getattr(torch, gathering_dtype) if gathering_dtype else None,
            reduce_dtype=torch.float32,
            cast_forward_inputs=False,  # the batch holds log-probabilities; hidden states have the embedding's type
        ),
        "offload_policy": CPUOffloadPolicy(torch.cuda.is_available()) if is_offloaded else OffloadPolicy(),
    }


def _layers(model: Any) -> list[torch.nn.Module]:
    """Return the decoder layers; all other parameters belong to the root."""
    base = without_wrapper(model)
    names = set(getattr(base, "_no_split_modules", None) or ())
    return [module for module in base.modules() if type(module).__name__ in names]


def _sent(found: list[Any]) -> Any:
    torch.distributed.broadcast_object_list(found, src=0)
    return found[0]


@torch.no_grad()  # type: ignore[untyped-decorator]
def _fill(model: Any, whole: Any, mesh: DeviceMesh) -> None:
    """Copy the first learner's parameters and buffers, also those that no state contains, into the sharded model."""
    source: Mapping[str, Tensor] = {} if whole is None else dict([*whole.named_parameters(), *whole.named_buffers()])
    for name, own in [*model.named_parameters(), *model.named_buffers()]:
        value = torch.empty(own.shape, dtype=own.dtype, device=mesh.device_type) if isinstance(own, DTensor) else own
        if source:
            value.copy_(source[name])
        if isinstance(own, DTensor):
            own.copy_(distribute_tensor(value, own.device_mesh, own.placements, src_data_rank=0))
        else:
            torch.distributed.broadcast(own, src=0)


def whole_tensor(tensor: Tensor) -> Tensor:
    """Return a tensor whole, on the device; of a sharded one, all learners must call this at the same time."""
    return tensor.to(tensor.device_mesh.device_type).full_tensor() if isinstance(tensor, DTensor) else tensor


@torch.no_grad()  # type: ignore[untyped-decorator]
def clip_gradients(parameters: Sequence[Tensor], most: float) -> float:
    """Scale gradients so that their norm is at most `most`; return the norm before.

    All learners of sharded parameters call this at the same time. Their parts may be in the host's memory, and the
    learners' process group exchanges tensors of the device only.
    """
    gradients = [each.grad for each in parameters if isinstance(each.grad, DTensor)]
    if not gradients:
        return float(clip_grad_norm_(parameters, most))
    parts = [each.to_local() for each in gradients]
    square = get_total_norm(parts).square().to(gradients[0].device_mesh.device_type)
    torch.distributed.all_reduce(square)
    norm = float(square.sqrt())
    for part in parts:
        part.mul_(min(1.0, most / (norm + 1e-6)))
    return norm


def part_of(value: Tensor, own: Tensor) -> Tensor:
    """Return the same part of a whole tensor that this learner holds of another one; all of it, if it holds all."""
    if not isinstance(own, DTensor):
        return value
    return distribute_tensor(value.to(own.device), own.device_mesh, own.placements, src_data_rank=None)
