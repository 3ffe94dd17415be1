"""Tokens and seconds of a step, from shapes and the figures of GPUs. Lengths and shares of the peak are assumptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from codea1_agents.train.sizing.devices import Gpu
from codea1_agents.train.sizing.learning import LearnedModule
from codea1_agents.train.sizing.sampling import SampledModule

LEARNS_AT, SAMPLES_AT = 0.35, 0.5
"""Share of a GPU's peak that learning and long prompts reach, and of its bandwidth that sampling reaches: assumed."""
MEAN_PROMPT, MEAN_REPLY = 700, 500
"""Mean tokens of a prompt and of a reply: assumed."""


@dataclass(frozen=True, slots=True)
class RoleWork:
    """What one role samples and learns in a step."""

    role: str
    prompt_once: bool
    """Whether a learner computes the prompt of a group once."""
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
    extra_passes: int
    """Forward passes in learning beside the one with a gradient: for the reference, for the old log-probabilities, for
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
    overlap: bool
    """Whether runners sample while learners learn, instead of one after the other."""

    @property
    def total(self) -> float:
        """Of the whole step."""
        sample = self.decode + self.prefill
        return max(sample, self.learn) if self.overlap else sample + self.learn


def assumptions(work: Sequence[RoleWork]) -> dict[str, Any]:
    """Return what the times assume, and no run has measured, as plain data; lengths by role."""
    lengths = {name: {each.role: getattr(each, name) for each in work} for name in ("prompt", "reply")}
    return {"learns_at": LEARNS_AT, "samples_at": SAMPLES_AT, **lengths}


def step_seconds(
    work: Sequence[RoleWork],
    sampled: Sequence[SampledModule],
    learned: Sequence[LearnedModule],
    gpu: Gpu,
    *,
    n_sampling: int,
    n_learning: int,
    overlap: bool = False,
) -> StepSeconds:
    """Return the seconds of a step.

    Args:
        work: by role.
        sampled: the module that samples each of these roles.
        learned: the module that learns each of these roles.
        gpu: with figures of speed.
        n_sampling: GPUs that sample.
        n_learning: GPUs that learn.
        overlap: whether runners sample while learners learn.
    """
    operations = gpu.tflops * 1e12 * LEARNS_AT
    decode = sum(_decode_s(each, module, gpu) for each, module in zip(work, sampled, strict=True))
    prefill = sum(
        each.prefilled_tokens * 2 * module.shape.parameters for each, module in zip(work, sampled, strict=True)
    )
    learn = sum(_operations(each, module) for each, module in zip(work, learned, strict=True))
    return StepSeconds(decode / n_sampling, prefill / operations / n_sampling, learn / operations / n_learning, overlap)


def _decode_s(work: RoleWork, module: SampledModule, gpu: Gpu) -> float:
    """Return the seconds of sampling on one GPU: each step reads the weights and the cache of all rows in flight."""
    rows = max(1, min(module.rows, work.sampled))
    read = module.weights + rows * (work.prompt + work.reply / 2) * module.token_bytes
    return work.sampled / rows * work.reply * read / (gpu.bandwidth_tb * 1e12 * SAMPLES_AT)


def _operations(work: RoleWork, module: LearnedModule) -> float:
    """Return the operations of learning: forward 2 and backward 4 per parameter and token, 2 per extra pass.

    With adapters, the backward pass computes the gradient of few weights and takes 2.
    """
    backward = 2 if module.settings.lora else 4
    return work.learned_tokens * (2 + backward + 2 * work.extra_passes) * module.shape.parameters
