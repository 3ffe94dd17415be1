"""Sampling of responses from a causal language model, with the exact log-probability of each token.

This module does not call `generate`, for three reasons. Each response has its own random numbers, so it depends neither
on the other responses of its batch nor on the number of runners. No logits processor changes the distribution. The
log-probabilities are those of the distribution that was sampled. `RolloutEngine` is what a runner needs of an engine;
the other engine is in `vllm_engine`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor
from transformers.cache_utils import DynamicCache, DynamicLayer

from codea1_agents.models.row_sampling import nucleus

PROMPTS_AT_ONCE = 64
Rows: TypeAlias = Sequence[Sequence[int]]
"""Rows of token ids, or of the integers of seeds; they may differ in length."""
_MIN_GROWTH = 64
"""Smallest number of positions that a buffer grows by."""
_COMPACT_BELOW = 0.75  # share of unfinished rows at which dropping the finished ones is worth copying the rest


@dataclass(frozen=True, slots=True)
class SamplingRules:
    """How responses are sampled.

    Raises:
        ValueError: a number out of range.
    """

    max_tokens: int = 512
    """Longest response, including its end token."""
    temperature: float = 1.0
    """0 takes the most probable token; its log-probability is that at temperature 1."""
    top_p: float = 1.0
    """Tokens are drawn from the most probable ones that together reach this share; 1: all tokens. For evaluation only:
    the loss trains the whole distribution."""
    micro_batch_size: int = PROMPTS_AT_ONCE
    """Responses in one batch."""

    def __post_init__(self) -> None:
        is_in_range = 0 <= self.temperature < float("inf") and 0 < self.top_p <= 1
        if self.max_tokens < 1 or self.micro_batch_size < 1 or not is_in_range:
            raise ValueError(f"sampling: a number is out of range: {self}")


@dataclass(frozen=True, slots=True)
class ResponseSize:
    """What remains of a response of which nobody needs the tokens."""

    n_tokens: int
    is_cut: bool
    """As in `Response`."""


@dataclass(frozen=True, slots=True)
class Response:
    """One sampled response. In another process its numbers are arrays, which take a sixth of the memory of tuples."""

    tokens: Sequence[int]
    """Token ids, including the end token if it was sampled."""
    log_probs: Sequence[float]
    """Log-probability of each token, given the tokens before it, at the temperature of sampling."""
    is_cut: bool
    """Whether the token limit ended it."""

    @property
    def n_tokens(self) -> int:
        """Number of tokens."""
        return len(self.tokens)

    def __reduce__(self) -> tuple[Any, ...]:
        return Response, (array("i", self.tokens), array("d", self.log_probs), self.is_cut)


def sample_responses(
    model: Any, prompts: Rows, seeds: Rows, *, end_tokens: Iterable[int], rules: SamplingRules
) -> list[Response]:
    """Return one response per prompt.

    Args:
        model: a causal language model of `transformers`.
        prompts: token ids, none empty.
        seeds: one per prompt; it decides all random numbers of the response.
        end_tokens: ids that end a response.
        rules: how responses are sampled.

    Raises:
        ValueError: a prompt is empty, or the numbers of prompts and seeds differ.
    """
    require_prompts(prompts, seeds)
    ends = frozenset(end_tokens)
    # Prompts of similar length share a batch, which saves padding. Equal prompts are adjacent and computed once.
    first: dict[tuple[int, ...], int] = {}
    keys = [(len(prompt), first.setdefault(tuple(prompt), position)) for position, prompt in enumerate(prompts)]
    order = sorted(range(len(prompts)), key=keys.__getitem__)
    found: dict[int, Response] = {}
    for start in range(0, len(order), rules.micro_batch_size):
        rows = order[start : start + rules.micro_batch_size]
        uniform = np.stack([np.random.default_rng(seeds[row]).random(rules.max_tokens) for row in rows])
        with torch.inference_mode():
            batch = _sampled(model, [tuple(prompts[row]) for row in rows], uniform, ends, rules)
        found.update(zip(rows, batch, strict=True))
    return [found[position] for position in range(len(prompts))]


def require_prompts(prompts: Rows, seeds: Rows) -> None:
    """Raise ValueError unless no prompt is empty and there is one seed per prompt."""
    if len(prompts) != len(seeds) or not all(map(len, prompts)):
        raise ValueError("each response needs a prompt that is not empty, and a seed")


def single_seed(seed: Sequence[int]) -> int:
    """Return a seed as one number below 2**53, for engines that take a single number."""
    return int(np.random.SeedSequence(list(seed)).generate_state(1, np.uint64)[0] >> np.uint64(11))


def left_padded(rows: Rows) -> tuple[Tensor, Tensor]:
    """Return ids (B, P) int64, padded on the left with 0, and a mask (B, P) bool that is False there."""
    width = max(map(len, rows))
    ids = torch.tensor([[0] * (width - len(row)) + list(row) for row in rows], dtype=torch.int64)
    lengths = torch.tensor([len(row) for row in rows])
    return ids, torch.arange(width) >= (width - lengths).unsqueeze(-1)


def _sampled(
    model: Any,
    prompts: Sequence[tuple[int, ...]],
    uniform: np.ndarray[Any, np.dtype[np.float64]],
    ends: frozenset[int],
    rules: SamplingRules,
) -> list[Response]:
    device = model.device
    draws = torch.from_numpy(uniform).to(device)
    end_ids = torch.tensor(sorted(ends), dtype=torch.int64, device=device)
    tokens = torch.zeros(draws.shape, dtype=torch.int64, device=device)
    log_probs = torch.zeros(draws.shape, dtype=torch.float32, device=device)
    batch, logits = _Batch.begun(model, prompts)
    for step in range(rules.max_tokens):
        chosen, of_chosen = _drawn(logits, draws[batch.rows, step], rules.temperature, rules.top_p)
        tokens[batch.rows, step], log_probs[batch.rows, step] = chosen, of_chosen
        batch.is_finished |= torch.isin(chosen, end_ids)
        n_left = len(chosen) - int(batch.is_finished.sum())
        if not n_left or step + 1 == rules.max_tokens:
            break
        if n_left <= _COMPACT_BELOW * len(chosen):
            chosen = chosen[~batch.is_finished]
            batch.keep(~batch.is_finished)
        logits = batch.continued(chosen)
    return [_response(*row, ends) for row in zip(tokens.tolist(), log_probs.tolist(), strict=True)]


class _Batch:
    """Unfinished responses and their key-value cache. Rows of finished responses may be dropped."""

    def __init__(self, model: Any, cache: Any, mask: Tensor, positions: Tensor) -> None:
        self._model, self._cache, self._mask, self._positions = model, cache, mask, positions
        self.rows = torch.arange(len(mask), device=mask.device)
        """(B,) number of each row in the initial batch."""
        self.is_finished = torch.zeros(len(mask), dtype=torch.bool, device=mask.device)

    @classmethod
    def begun(cls, model: Any, prompts: Sequence[tuple[int, ...]]) -> tuple[_Batch, Tensor]:
        """Compute the prompts, equal ones once. Return the batch and the logits (B, V) of the first tokens."""
        distinct = {prompt: number for number, prompt in enumerate(dict.fromkeys(prompts))}
        ids, mask = (each.to(model.device) for each in left_padded(list(distinct)))
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        cache = preallocated_cache(model)
        logits = _next_logits(model, ids, mask, positions, cache)
        which = torch.tensor([distinct[prompt] for prompt in prompts], device=model.device)
        if len(distinct) < len(prompts):
            cache.reorder_cache(which)
        return cls(model, cache, mask[which], positions[which, -1:]), logits[which]

    def keep(self, is_kept: Tensor) -> None:
        """Keep the rows where `is_kept`, (B,) bool, is True."""
        kept = is_kept.nonzero().squeeze(-1)
        self._cache.reorder_cache(kept)
        self._mask, self._positions = self._mask[kept], self._positions[kept]
        self.rows, self.is_finished = self.rows[kept], self.is_finished[kept]

    def continued(self, chosen: Tensor) -> Tensor:
        """Append a token (B,) to each row and return the logits (B, V) of the next tokens."""
        self._mask = torch.cat([self._mask, self._mask.new_ones(len(chosen), 1)], dim=-1)
        self._positions = self._positions + 1
        return _next_logits(self._model, chosen.unsqueeze(-1), self._mask, self._positions, self._cache)


def _next_logits(model: Any, ids: Tensor, mask: Tensor, positions: Tensor, cache: Any) -> Tensor:
    given = {"input_ids": ids, "position_ids": positions, "use_cache": True, "logits_to_keep": 1}
    if _is_recurrent(type(model)):  # type: ignore[arg-type]  # classes are hashable
        # A recurrent model has another name for its state, would ignore one by the usual name without a word, and has
        # no use for a mask of what it has read before.
        output = model(**given, cache_params=cache, attention_mask=mask[:, -ids.shape[1] :])
    else:
        output = model(**given, past_key_values=cache, attention_mask=mask)
    logits: Tensor = output.logits[:, -1].float()
    return logits


@cache  # by class, as inspecting a signature in each step would cost a small model a percent of its time
def _is_recurrent(kind: type[Any]) -> bool:
    return "cache_params" in signature(kind.forward).parameters


def _drawn(logits: Tensor, uniform: Tensor, temperature: float, top_p: float = 1.0) -> tuple[Tensor, Tensor]:
    """Return per row the token at which the cumulated distribution reaches `uniform`, in [0, 1), and its log-prob."""
    log_probs = (logits / (temperature or 1.0)).log_softmax(-1)
    if temperature == 0:
        chosen = logits.argmax(-1)
    else:
        weights = log_probs.exp()
        if top_p < 1:
            weights = nucleus(weights, top_p)
        cumulated = weights.cumsum(-1, dtype=torch.float64)
        drawn = torch.searchsorted(cumulated, uniform.unsqueeze(-1) * cumulated[:, -1:], right=True).squeeze(-1)
        chosen = drawn.clamp(max=logits.shape[-1] - 1)
    return chosen, log_probs.gather(-1, chosen.unsqueeze(-1)).squeeze(-1)


def _response(tokens: list[int], log_probs: list[float], ends: frozenset[int]) -> Response:
    length = next((position + 1 for position, token in enumerate(tokens) if token in ends), len(tokens))
    is_cut = tokens[length - 1] not in ends
    return Response(tuple(tokens[:length]), tuple(log_probs[:length]), is_cut)


class RolloutEngine(Protocol):
    """Samples responses with the weights of one module."""

    @property
    def context_length(self) -> int | None:
        """Most tokens of a prompt and its response together; None: unknown."""

    def sample(self, prompts: Rows, seeds: Rows, ends: Iterable[int], rules: SamplingRules) -> list[Response]:
        """Return one response per prompt; see `sample_responses`.

        Raises:
            StaleWeights: the last hand-over of weights failed.
        """

    def load_weights(self, version: int) -> None:
        """Sample with the module's present weights from now on.

        Args:
            version: number of the weights in the training.

        Raises:
            StaleWeights: the engine does not compute with these weights.
        """

    def sleep(self) -> None:
        """Release the device's memory until `wake`, for a learner on the same device."""

    def wake(self) -> None:
        """Take the device's memory again. The next `load_weights` brings the weights."""

    def close(self) -> None:
        """Release the memory. The engine samples no more."""


class TransformersEngine:
    """Samples with the module's own model, so no weights are handed over."""

    def __init__(self, model: Any) -> None:
        self._model, self._device = model, model.device

    @property
    def context_length(self) -> int | None:
        """As the model's configuration says."""
        return getattr(self._model.config, "max_position_embeddings", None)

    def sample(self, prompts: Rows, seeds: Rows, ends: Iterable[int], rules: SamplingRules) -> list[Response]:
        """Return one response per prompt; see `sample_responses`."""
        return sample_responses(self._model, prompts, seeds, end_tokens=ends, rules=rules)

    def load_weights(self, version: int) -> None:
        """Do nothing: the weights are the module's."""

    def sleep(self) -> None:
        """Move the module's model to the host."""
        self._model.to("cpu")

    def wake(self) -> None:
        """Move it back."""
        self._model.to(self._device)

    def close(self) -> None:
        """Do nothing: the memory is the module's."""


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
