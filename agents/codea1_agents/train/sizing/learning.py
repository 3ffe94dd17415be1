"""The memory of a learner, by part.

The bytes of activations follow what autograd keeps of Qwen2 and Llama in `transformers` with PyTorch's attention. They
were derived from the allocations of a CPU and are compared with them by `measuring`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codea1_agents.models.shapes import ModelShape
from codea1_agents.train.grpo.model_settings import ModelSettings

FLOAT = 4
"""Bytes of a float32, in which a learner keeps weights, gradients and the states of AdamW."""
_LOGIT_BYTES = 16
"""Four float32 per logit exist at the same time in the backward pass."""
_ADAMW_BYTES = 2 * FLOAT


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """The largest micro-batch of a module."""

    tokens: int
    """Tokens that are computed, with padding."""
    replies: int
    """Tokens of replies among them."""
    keys: int
    """Tokens whose keys and values the attention reads: a prompt counts for each of its replies."""
    mask: int
    """Pairs of tokens in the mask of the attention; 0: rows of one length need none."""

    @classmethod
    def of(cls, rows: int, prompt: int, reply: int, *, prompt_once: bool = False) -> MicroBatch:
        """Return the size of some rows of these lengths in tokens.

        Args:
            rows: responses; with more than one, some are shorter.
            prompt: tokens of a prompt.
            reply: tokens of a reply.
            prompt_once: whether all rows have one prompt, which is computed once.
        """
        width, replies = prompt + reply, rows * reply
        tokens = prompt + replies if prompt_once else rows * width
        pairs = (replies if prompt_once else tokens) * width
        return cls(tokens, replies, rows * width, pairs if rows > 1 else 0)


@dataclass(frozen=True, slots=True)
class LearnedModule:
    """A module as a learner holds it."""

    shape: ModelShape
    settings: ModelSettings
    learns: bool
    has_reference: bool
    """Whether there is a divergence term. With adapters, the reference is the model without them."""
    batch: MicroBatch
    logits_at_once: int
    """As in `UpdateSettings`."""

    @property
    def with_gradient(self) -> int:
        """Number of parameters that can have a gradient: those of the adapters, or all."""
        lora = self.settings.lora
        return self.shape.adapter_parameters(lora.rank, lora.target_modules) if lora else self.shape.parameters

    @property
    def trained(self) -> int:
        """Number of trained parameters."""
        return self.with_gradient if self.learns else 0

    @property
    def held(self) -> int:
        """Number of parameters, adapters included."""
        return self.shape.parameters + (self.with_gradient if self.settings.lora else 0)

    @property
    def compute_bytes(self) -> int:
        """Bytes of a number in the forward pass."""
        return 2 if self.settings.autocast else FLOAT


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the memory of a process."""

    name: str
    n_bytes: int
    is_kept: bool = False
    """Whether a learner holds it between iterations, too."""
    is_on_host: bool = False
    """Whether it is in the host's memory even if a GPU computes."""


def learner_parts(
    modules: Sequence[LearnedModule],
    *,
    n_learners: int,
    is_on_gpu: bool,
    is_sharded: bool = False,
    is_offloaded: bool = False,
    is_on_host: bool = False,
) -> tuple[Part, ...]:
    """Return the memory of one learner, which trains all modules one after the other.

    Args:
        modules: all modules of the run; at least one learns.
        n_learners: with two and more, DDP keeps buckets of the gradients of all modules.
        is_on_gpu: there, AdamW needs a copy of the states that it changes.
        is_sharded: whether each learner holds a part of the modules instead.
        is_offloaded: whether the states of AdamW are on the host between iterations.
        is_on_host: whether weights, gradients, AdamW and references are on the host all the time; AdamW computes there.
    """
    n_parts = n_learners if is_sharded else 1
    learning = [each for each in modules if each.learns]
    references = sum(each.shape.parameters for each in learning if each.has_reference and not each.settings.lora)
    steps_on_gpu = is_on_gpu and not is_on_host
    heaviest = max(learning, key=lambda each: _transient(each, steps_on_gpu, n_parts))
    has_buckets = n_learners > 1 and not is_sharded
    adamw = _ADAMW_BYTES * sum(each.trained for each in learning) // n_parts
    return (
        Part("weights", FLOAT * sum(each.held for each in modules) // n_parts, True, is_on_host),
        Part("gradients", FLOAT * max(each.trained for each in learning) // n_parts, False, is_on_host),
        Part("buckets of DDP", FLOAT * sum(each.with_gradient for each in modules) if has_buckets else 0, is_kept=True),
        Part("AdamW", adamw, not is_offloaded, is_on_host),
        Part("references", FLOAT * references // n_parts, True, is_on_host),
        Part("gathered", gathered_bytes(heaviest) if is_sharded else 0),
        Part("activations", kept_bytes(heaviest)),
        Part("work", _transient(heaviest, steps_on_gpu, n_parts) - kept_bytes(heaviest)),
    )


def gathered_bytes(module: LearnedModule) -> int:
    """Return the bytes of what a learner of a sharded module gathers at a time.

    These are the embedding and the output layer for a whole pass, and two decoder layers, since the next is gathered
    while one computes; in the backward pass, the gradients of one more.
    """
    shape = module.shape
    ends = shape.head_weights * (1 if shape.is_tied else 2)
    layer = (module.held - ends) // shape.layers
    number = 2 if module.settings.gathering_dtype else FLOAT
    return number * (ends + 2 * layer) + FLOAT * (module.trained > 0) * layer


def _transient(module: LearnedModule, is_on_gpu: bool, n_parts: int) -> int:
    step = FLOAT * module.trained // n_parts if is_on_gpu else 0
    return max(kept_bytes(module) + work_bytes(module), step)


def kept_bytes(module: LearnedModule) -> int:
    """Return the bytes that the forward pass keeps for the backward pass."""
    shape, batch = module.shape, module.batch
    states = FLOAT * shape.hidden
    norm = 0 if module.settings.lora else states  # its input, if its weights train
    ends = batch.tokens * (states + norm + 2 * FLOAT * shape.head_size) + batch.replies * states + _kept_logits(module)
    if module.settings.gradient_checkpointing:
        return ends + batch.tokens * shape.layers * states + batch.mask
    return ends + shape.layers * _layer_bytes(module)


def work_bytes(module: LearnedModule) -> int:
    """Return the most bytes that a micro-batch needs at a time beyond those it keeps and the gradients."""
    ffn = module.batch.tokens * module.shape.intermediate
    lora_casts = FLOAT if module.settings.lora and module.settings.autocast else 0
    gradient = ffn * (module.compute_bytes + lora_casts)
    again = _layer_bytes(module) if module.settings.gradient_checkpointing else 0
    return max(_head_bytes(module), again + gradient + _tied_gradient(module), _cached_casts(module))


def _tied_gradient(module: LearnedModule) -> int:
    """Return the bytes of the output layer's gradient that waits for that of the embedding with the same weights."""
    is_tied = module.shape.is_tied and not module.settings.lora
    return FLOAT * module.shape.head_weights if is_tied else 0


def _layer_bytes(module: LearnedModule) -> int:
    """Return the bytes that one decoder layer keeps."""
    per_token = _norm_bytes(module) + 2 * module.compute_bytes * module.shape.queries + _ffn_bytes(module)
    return module.batch.tokens * per_token + _attention_bytes(module) + _casts(module)


def _norm_bytes(module: LearnedModule) -> int:
    """Return the bytes per token of both norms: inputs, normalised inputs, and outputs as their readers cast them."""
    h, lora = module.shape.hidden, module.settings.lora
    normalised = 0 if lora else 2 * FLOAT * h
    if not module.settings.autocast:
        return 2 * FLOAT * h + normalised + 2 * FLOAT * h
    readers = 6 if lora else 5  # queries, keys, values, gate, up: each casts for itself, as does the adapter of outputs
    return 2 * FLOAT * h + normalised + readers * module.compute_bytes * h


def _attention_bytes(module: LearnedModule) -> int:
    """Return the bytes of keys, values, mask and the sums of the attention.

    With a mask, keys and values are repeated for each query's head, unless there is only one.
    """
    shape, batch = module.shape, module.batch
    keys = shape.queries if batch.mask and shape.kv_heads > 1 else shape.kv_heads * shape.head_size
    return module.compute_bytes * (2 * keys * batch.keys + batch.mask) + FLOAT * shape.heads * batch.tokens


def _ffn_bytes(module: LearnedModule) -> int:
    lora = module.settings.lora
    adapters = module.compute_bytes * lora.rank * len(lora.target_modules) if lora else 0
    return 4 * module.compute_bytes * module.shape.intermediate + adapters


def _casts(module: LearnedModule) -> int:
    """Return the bytes of one layer's weights as autocast converts them."""
    if not module.settings.autocast:
        return 0
    adapters = module.with_gradient // module.shape.layers if module.settings.lora else 0
    return module.compute_bytes * (module.shape.linear_weights + adapters)


def _cached_casts(module: LearnedModule) -> int:
    """Return the bytes of converted weights at the end of a forward pass, where activations do not hold them anyway."""
    if module.settings.lora or not module.settings.gradient_checkpointing:
        return 0
    return module.shape.layers * _casts(module)


def _kept_logits(module: LearnedModule) -> int:
    """Return the bytes of logits that the forward pass keeps: where there are several parts, all are computed again."""
    return 0 if _has_parts(module) else FLOAT * module.batch.replies * module.shape.vocabulary + _head_cast(module)


def _head_bytes(module: LearnedModule) -> int:
    """Return the most bytes of logits, and of the gradient of the output layer, which the parts add up."""
    logits = min(module.logits_at_once or module.batch.replies, module.batch.replies) * module.shape.vocabulary
    head = 0 if module.settings.lora else FLOAT * module.shape.head_weights
    sums = module.compute_bytes * module.shape.head_weights if head else 0
    if not _has_parts(module):
        return max((_LOGIT_BYTES - FLOAT) * logits, sums + head)
    return max(_LOGIT_BYTES * logits + _head_cast(module) + head, sums + 2 * head)


def _head_cast(module: LearnedModule) -> int:
    return module.compute_bytes * module.shape.head_weights if module.settings.autocast else 0


def _has_parts(module: LearnedModule) -> bool:
    return 0 < module.logits_at_once < module.batch.replies
