"""Samples each row of a batch with random numbers of its own, so that no reply depends on the other rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from codea1_agents.models.completions import Sampling


def uniforms(seeds: Sequence[int], n: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Return (rows, n) numbers within [0, 1). Row i depends only on seeds[i]; a larger n only appends numbers."""
    rows = [np.random.default_rng(seed).random(n, dtype=np.float32) for seed in seeds]
    return np.array(rows, dtype=np.float32).reshape(len(seeds), n)


class RowSampler:
    """A logits processor that leaves exactly one token per row possible: the one that the row's random number selects.

    It applies the temperature and the softmax, then the nucleus of `top_p`, then the inverse of the cumulative
    distribution. transformers' own sampling would draw the whole batch from torch's global generator.
    """

    def __init__(self, sampling: Sampling, seeds: Sequence[int], prompt_length: int) -> None:
        """Take the settings, one seed per row, and the common length of the padded prompts in tokens."""
        self._sampling, self._prompt_length = sampling, prompt_length
        self._uniforms = uniforms(seeds, sampling.max_tokens)

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Return scores, (rows, vocabulary); all but one per row are -inf."""
        import torch  # noqa: PLC0415  heavy, and an extra

        weights = torch.softmax(scores.float() / self._sampling.temperature, dim=-1)
        if self._sampling.top_p < 1:
            weights = nucleus(weights, self._sampling.top_p)
        cumulative = weights.cumsum(dim=-1)
        drawn = torch.as_tensor(self._uniforms[:, input_ids.shape[1] - self._prompt_length], device=scores.device)
        target = drawn.unsqueeze(1) * cumulative[:, -1:]
        # The first token whose cumulative weight exceeds the target; if rounding leaves none, the last one with weight.
        last = weights.shape[1] - 1 - weights.flip(1).ne(0).int().argmax(dim=1, keepdim=True)
        chosen = torch.searchsorted(cumulative, target, right=True).minimum(last)
        return torch.full_like(scores, -torch.inf).scatter(1, chosen, 0.0)


def nucleus(probabilities: Any, top_p: float) -> Any:
    """Keep each row's likeliest tokens that reach `top_p` together, at least one; set others to 0. (rows, tokens)"""
    ranked, order = probabilities.sort(dim=-1, descending=True, stable=True)
    is_out = ranked.cumsum(-1) - ranked >= top_p
    return probabilities.masked_fill(is_out.scatter(-1, order, is_out), 0.0)
