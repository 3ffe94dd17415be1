"""Tokens and seconds of a step, from shapes and the figures of GPUs. Lengths and shares of the peak are assumptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codea1_agents.train.sizing.devices import Gpu
from codea1_agents.train.sizing.learning import FLOAT, SizedModule

LEARNS_AT, SAMPLES_AT = 0.35, 0.5
"""Share of a GPU's peak that learning and long prompts reach, and of its bandwidth that sampling reaches: assumed."""
MEAN_PROMPT, MEAN_REPLY = 700, 500
"""Mean tokens of a prompt and of a reply: assumed."""
TOKEN_S = 0.006
"""Least seconds of a token of the few replies that are still being sampled at the end of a batch: assumed."""
HANDOVER_S = 1.3, 2.0
"""Least and most seconds per GB of weights that the driver hands over (docs/experiments/internet-scale/report.md)."""


@dataclass(frozen=True, slots=True)
class RoleWork:
    """What one role samples and learns in a step."""

    role: str
    module: str
    """Name of the module that plays it."""
    prompt: int
    reply: int
    """Mean tokens of a prompt and of a reply: the assumed ones, or fewer if the settings allow fewer."""
    group: int
    """Replies of a group; they share their prompt, which samplers compute once."""
    sampled: int
    """Replies."""
    trained: int
    """Replies that train the role's module; 0: it does not learn."""
    epochs: int
    prompt_once: bool
    """Whether a learner computes the prompt of a group once."""
    longest: int = 0
    """Most tokens of a reply."""
    batches: int = 1
    """How often a runner samples in a step, each time until its longest reply ends."""
    extra_passes: int = 0
    """Forward passes in learning besides the one with a gradient: for the reference, for the old log-probabilities, for
    activations that are computed again."""

    @property
    def sampled_tokens(self) -> int:
        """Tokens of the replies."""
        return self.sampled * self.reply

    @property
    def prefilled_tokens(self) -> int:
        """Tokens of the prompts that a sampler computes, those of a group once."""
        return -(-self.sampled // self.group) * self.prompt

    @property
    def learned_tokens(self) -> int:
        """Tokens that the learners compute, prompts included."""
        prompts = -(-self.trained // self.group) if self.prompt_once else self.trained
        return self.epochs * (prompts * self.prompt + self.trained * self.reply)


@dataclass(frozen=True, slots=True)
class StepSeconds:
    """Seconds of a step, by part."""

    decode: float
    prefill: float
    learn: float
    total: float
    """The whole step: less than the sum of its parts if runners sample while learners learn. Without what follows."""
    tail: float
    """Of the last reply of each batch, if it is as long as allowed: while it is sampled alone."""
    handover: tuple[float, float]
    """Least and most of the hand-over of weights."""

    @property
    def least(self) -> float:
        """The step if no reply is longer than the mean."""
        return self.total + self.handover[0]

    @property
    def most(self) -> float:
        """The step if each batch has a reply of the most tokens allowed."""
        return self.total + self.tail + self.handover[1]


def assumptions(work: Sequence[RoleWork]) -> dict[str, Any]:
    """Return what the times assume, and no run has measured, as plain data; lengths by role."""
    lengths = {name: {each.role: getattr(each, name) for each in work} for name in ("prompt", "reply")}
    handover = dict(zip(("least", "most"), HANDOVER_S, strict=True))
    return {"learns_at": LEARNS_AT, "samples_at": SAMPLES_AT, "token_s": TOKEN_S, "handover_s": handover, **lengths}


def step_seconds(
    work: Sequence[RoleWork],
    modules: Mapping[str, SizedModule],
    gpu: Gpu,
    *,
    n_sampling: int,
    n_learning: int,
    cache_tokens: int = 0,
    overlap: bool = False,
) -> StepSeconds:
    """Return the seconds of a step.

    Args:
        work: by role.
        modules: by name.
        gpu: with figures of speed.
        n_sampling: GPUs that sample.
        n_learning: GPUs that learn.
        cache_tokens: tokens in the cache of the smallest engine of vLLM; 0: none bounds the rows in flight.
        overlap: whether runners sample while learners learn.
    """
    operations, n_bytes = gpu.tflops * 1e12 * LEARNS_AT, gpu.bandwidth_tb * 1e12 * SAMPLES_AT
    decode = sum(_decoded_bytes(each, modules[each.module], cache_tokens) for each in work) / n_bytes / n_sampling
    prefilled = sum(each.prefilled_tokens * 2 * modules[each.module].shape.parameters for each in work)
    prefill = prefilled / operations / n_sampling
    learn = sum(_operations(each, modules[each.module]) for each in work) / operations / n_learning
    total = max(decode + prefill, learn) if overlap else decode + prefill + learn
    tails = (
        max(TOKEN_S, modules[role.module].sampling_weights / n_bytes) * role.batches * max(0, role.longest - role.reply)
        for role in work
    )
    # Of modules with adapters, these only go to the runners, in float32.
    handed_over = (
        FLOAT * each.with_gradient if each.settings.lora else each.sampling_weights for each in modules.values()
    )
    gigabytes = sum(handed_over) / 1e9
    return StepSeconds(
        decode, prefill, learn, total, sum(tails), (HANDOVER_S[0] * gigabytes, HANDOVER_S[1] * gigabytes)
    )


def _decoded_bytes(work: RoleWork, module: SizedModule, cache_tokens: int) -> float:
    """Return the bytes that sampling reads: at each token the weights, and the cache of all rows in flight."""
    rows = min(module.rows, work.sampled)
    if module.is_vllm and cache_tokens:
        rows = min(rows, cache_tokens // (work.prompt + work.reply))
    rows = max(1, rows)
    read = module.sampling_weights + rows * (work.prompt + work.reply / 2) * module.token_bytes
    return work.sampled / rows * work.reply * read


def _operations(work: RoleWork, module: SizedModule) -> int:
    """Return the operations of learning: forward 2 and backward 4 per parameter and token, 2 per extra pass.

    With adapters, the backward pass computes the gradient of few weights and takes 2.
    """
    backward = 2 if module.settings.lora else 4
    return work.learned_tokens * (2 + backward + 2 * work.extra_passes) * module.shape.parameters
