"""The bytes of a model in one step of training: by the arithmetic of `train.sizing`, and as a CPU allocates them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from gymnasium.spaces import Discrete
from torch import Tensor
from torch.autograd.profiler import profile

from codea1_agents.models.shapes import shape_of
from codea1_agents.train.grpo.batch import Column
from codea1_agents.train.grpo.rl_module import CausalLMModule
from codea1_agents.train.grpo.settings import ModelSettings
from codea1_agents.train.settings.options import ClusterOptions
from codea1_agents.train.sizing.memory import MicroBatch, SizedModule, kept_bytes, learner_parts, work_bytes

_ALLOCATION = "[memory]"  # the name of the profiler's events


@dataclass(frozen=True, slots=True)
class StepBytes:
    """The bytes of one module."""

    weights: int
    gradients: int
    adamw: int
    reference: int
    activations: int
    """What the forward pass keeps for the backward pass."""
    peak: int
    """Most bytes of a micro-batch at a time, beyond weights, gradients and states, where gradients are added up."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a micro-batch."""

    n: int
    prompt: int
    reply: int
    """Tokens of a prompt and of a reply."""
    have_one_prompt: bool = False


def micro_batch(rows: Rows, *, packed: bool = False) -> MicroBatch:
    """Return the size of some rows; with more than one, some are shorter."""
    width, replies = rows.prompt + rows.reply, rows.n * rows.reply
    tokens = rows.prompt + replies if rows.have_one_prompt else rows.n * width
    if packed:
        return MicroBatch(tokens, replies, tokens, tokens**2)
    pairs = (replies if rows.have_one_prompt else tokens) * width
    return MicroBatch(tokens, replies, rows.n * width, pairs if rows.n > 1 else 0)


def computed(settings: ModelSettings, rows: Rows) -> StepBytes:
    """Return the bytes by arithmetic."""
    module = SizedModule(shape_of(settings.path), settings, micro_batch(rows, packed=settings.packing))
    parts = {each.name: each.n_bytes for each in learner_parts([module], ClusterOptions())}
    kept = kept_bytes(module)
    return StepBytes(
        parts["weights"], parts["gradients"], parts["AdamW"], parts["references"], kept, kept + work_bytes(module)
    )


def measured(settings: ModelSettings, rows: Rows) -> StepBytes:
    """Return the bytes that a CPU allocates for a model in a folder, in the second of two micro-batches."""
    module = _module(settings)
    trained = [each for each in module.model.parameters() if each.requires_grad]
    batch = _batch(rows, settings.logits_chunk_tokens)
    _log_probs(module, batch).sum().backward()
    with _allocations() as forward:
        loss = _log_probs(module, batch).sum()
    with _allocations() as backward:
        loss.backward()
    gradients = [each.grad for each in trained if each.grad is not None]
    n_gradients = _bytes(gradients)
    optimizer = torch.optim.AdamW(trained)
    optimizer.step()
    states = [each for of_one in optimizer.state.values() for each in of_one.values() if each.ndim]
    kept = forward().kept
    return StepBytes(
        weights=_bytes(module.model.parameters()),
        gradients=n_gradients,
        adamw=_bytes(states),
        reference=_bytes(module.reference.parameters()) if module.reference is not None else 0,
        activations=kept,
        peak=max(forward().peak, kept + backward().peak),
    )


def _module(settings: ModelSettings) -> Any:
    space: Any = Discrete(2)  # nothing reads it
    module = CausalLMModule(observation_space=space, action_space=space, model_config=settings.to_dict())
    return module.train()


def _log_probs(module: Any, batch: dict[str, Tensor]) -> Tensor:
    found: Tensor = module(batch)[Column.LOG_PROBS]
    return found


def _batch(rows: Rows, seed: int) -> dict[str, Tensor]:
    """Return random tokens; where there are several rows, one is a token shorter than the others."""
    random = torch.Generator().manual_seed(seed)
    prompts, replies = (torch.randint(0, 100, (rows.n, width), generator=random) for width in (rows.prompt, rows.reply))
    prompt_mask, reply_mask = (torch.ones_like(each, dtype=torch.bool) for each in (prompts, replies))
    reply_mask[1:2, -1] = False
    return {
        Column.PROMPT_IDS: prompts[:1].expand_as(prompts) if rows.have_one_prompt else prompts,
        Column.PROMPT_MASK: prompt_mask,
        Column.PROMPT_NUMBER: torch.arange(rows.n) * (not rows.have_one_prompt),
        Column.RESPONSE_IDS: replies,
        Column.RESPONSE_MASK: reply_mask,
    }


def _bytes(tensors: Any) -> int:
    """Return the bytes of tensors, those that share memory counted once."""
    storages = {each.untyped_storage().data_ptr(): each.untyped_storage().nbytes() for each in tensors}
    return sum(storages.values())


@dataclass(frozen=True, slots=True)
class _Allocated:
    kept: int
    peak: int


@contextmanager
def _allocations() -> Iterator[Callable[[], _Allocated]]:
    """Yield a function that returns what the block has allocated; call it after the block."""
    profiler: Any = profile(profile_memory=True)
    with profiler:
        yield lambda: _read_allocations(profiler)


def _read_allocations(profiler: Any) -> _Allocated:
    events = [each for each in profiler.kineto_results.events() if each.name() == _ALLOCATION]
    now = peak = 0
    for each in sorted(events, key=lambda each: each.start_ns()):
        now += each.nbytes()
        peak = max(peak, now)
    return _Allocated(now, peak)
