"""Sampling of responses from a causal language model, with the exact log-probability of each token.

This module does not call `generate`, for four reasons. Each response has its own random numbers, so it depends neither
on the other responses of its batch nor on the number of runners. No logits processor changes the distribution. The
log-probabilities are those of the distribution that was sampled. And a response that ends makes room for the next one,
so that an endless one delays no other.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from inspect import signature
from typing import Any, Self, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers.cache_utils import DynamicCache, DynamicLayer

from codea1_agents.models.processor_attention import prepare_for_processors

Rows: TypeAlias = Sequence[Sequence[int]]
"""Rows of token ids, or of the integers of seeds; they may differ in length."""
_MIN_GROWTH = 64
"""Smallest number of positions that a buffer grows by."""
_COMPACT_BELOW = 0.75  # share of unfinished rows at which dropping the finished ones is worth copying the rest
_ADMIT_FROM = 0.25  # share of free rows from which computing new prompts is worth copying the others

_BLOCK = 512
_CACHED_LOGITS = 2**19
"""Logits whose passes stay in a processor's cache: 2 MiB."""


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
    micro_batch_size: int = 64
    """Most responses that are sampled at a time."""

    def __post_init__(self) -> None:
        is_in_range = 0 <= self.temperature < float("inf") and 0 < self.top_p <= 1
        if self.max_tokens < 1 or self.micro_batch_size < 1 or not is_in_range:
            raise ValueError(f"sampling: a number is out of range: {self}")


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


@dataclass(frozen=True, slots=True)
class EndedResponse:
    """A response that has just ended."""

    position: int
    """Of its prompt."""
    response: Response


OnEnd: TypeAlias = Callable[[Response], object]
"""Called with each response when it ends."""


def uncounted(_response: Response) -> None:
    """Ignore a response."""


def sample_responses(
    model: Any,
    prompts: Rows,
    seeds: Rows,
    *,
    end_tokens: Iterable[int],
    rules: SamplingRules,
    on_end: OnEnd = uncounted,
) -> list[Response]:
    """Return one response per prompt; see `stream_responses`."""
    responses: dict[int, Response] = {}
    for ended in stream_responses(model, prompts, seeds, end_tokens, rules):
        responses[ended.position] = ended.response
        on_end(ended.response)
    return [responses[position] for position in range(len(prompts))]


def stream_responses(
    model: Any, prompts: Rows, seeds: Rows, end_tokens: Iterable[int], rules: SamplingRules
) -> Iterator[EndedResponse]:
    """Yield one response per prompt, each when it ends.

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
    prepare_for_processors(model)
    # Prompts of similar length share a batch, which saves padding. Equal prompts are adjacent and computed once.
    first: dict[tuple[int, ...], int] = {}
    keys = [(len(prompt), first.setdefault(tuple(prompt), position)) for position, prompt in enumerate(prompts)]
    waiting = deque(sorted(range(len(prompts)), key=keys.__getitem__))
    ends = torch.tensor(sorted(set(end_tokens)), dtype=torch.int64, device=model.device)
    batch: _Batch | None = None
    while waiting or batch is not None:
        with torch.inference_mode():
            if batch is not None:
                batch.advance()
            n_free = rules.micro_batch_size - (batch.n_left if batch is not None else 0)
            if waiting and (batch is None or (batch.is_joinable and n_free >= _ADMIT_FROM * rules.micro_batch_size)):
                admitted = [waiting.popleft() for _ in range(min(n_free, len(waiting)))]
                new = _Batch.begun(model, {number: prompts[number] for number in admitted}, seeds, rules)
                batch = new if batch is None else batch.joined(new)
            assert batch is not None
            ended = batch.draw(ends, rules)
        batch = batch if batch.n_left else None
        yield from ended


def require_prompts(prompts: Rows, seeds: Rows) -> None:
    """Raise ValueError unless no prompt is empty and there is one seed per prompt."""
    if len(prompts) != len(seeds) or not all(map(len, prompts)):
        raise ValueError("each response needs a prompt that is not empty, and a seed")


def left_padded(rows: Rows) -> tuple[Tensor, Tensor]:
    """Return ids (B, P) int64, padded on the left with 0, and a mask (B, P) bool that is False there."""
    width = max(map(len, rows))
    ids = torch.tensor([[0] * (width - len(row)) + list(row) for row in rows], dtype=torch.int64)
    lengths = torch.tensor([len(row) for row in rows])
    return ids, torch.arange(width) >= (width - lengths).unsqueeze(-1)


@dataclass(slots=True)
class _Rows:
    """What is known of B responses."""

    numbers: Tensor
    """(B,) positions of the prompts."""
    draws: Tensor
    """(B, max_tokens), the random number of each token."""
    tokens: Tensor
    """(B, max_tokens) int64"""
    log_probs: Tensor
    """(B, max_tokens) float32"""
    n_tokens: Tensor
    """(B,)"""
    is_over: Tensor
    """(B,) bool"""
    at: Tensor
    """(B, 1), the place of the last token that the model has read, from the first of the prompt."""

    @classmethod
    def begun(cls, numbers: Sequence[int], seeds: Rows, max_tokens: int, at: Tensor) -> Self:
        device, shape = at.device, (len(numbers), max_tokens)
        uniform = np.stack([np.random.default_rng(seeds[number]).random(max_tokens) for number in numbers])
        exact = torch.float32 if device.type == "mps" else torch.float64  # which MPS does not have
        return cls(
            torch.tensor(numbers, device=device),
            torch.from_numpy(uniform).to(device, exact),
            torch.zeros(shape, dtype=torch.int64, device=device),
            torch.zeros(shape, dtype=torch.float32, device=device),
            torch.zeros(len(numbers), dtype=torch.int64, device=device),
            torch.zeros(len(numbers), dtype=torch.bool, device=device),
            at,
        )

    def selected(self, rows: Tensor) -> _Rows:
        return _Rows(*(getattr(self, each.name)[rows] for each in fields(self)))

    def joined(self, others: _Rows) -> _Rows:
        return _Rows(*(torch.cat([getattr(self, each.name), getattr(others, each.name)]) for each in fields(self)))


class _Batch:
    """Responses that are sampled together, and their key-value cache. Rows that are over are dropped now and then.

    All rows end at the same column of the cache and of the mask, (B, columns); before their first one they are padded.
    """

    def __init__(self, model: Any, cache: Any, mask: Tensor, rows: _Rows, logits: Tensor) -> None:
        self._model, self._cache, self._mask, self._rows, self._logits = model, cache, mask, rows, logits
        self._chosen = logits.new_empty(len(mask), 1, dtype=torch.int64)
        self.n_left = len(mask)
        """Rows that are not over."""

    @property
    def is_joinable(self) -> bool:
        """Whether rows can be added; the state of other layers cannot be shifted to other columns."""
        return all(type(layer) is _PreallocatedLayer for layer in self._cache.layers)

    @classmethod
    def begun(cls, model: Any, prompts: Mapping[int, Sequence[int]], seeds: Rows, rules: SamplingRules) -> _Batch:
        """Compute prompts, by number; equal ones once."""
        distinct = {prompt: place for place, prompt in enumerate(dict.fromkeys(map(tuple, prompts.values())))}
        ids, mask = (each.to(model.device) for each in left_padded(list(distinct)))
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        cache = preallocated_cache(model)
        logits = _next_logits(model, ids, mask, positions, cache)
        which = torch.tensor([distinct[tuple(prompt)] for prompt in prompts.values()], device=model.device)
        if len(distinct) < len(prompts):
            cache.reorder_cache(which)
        rows = _Rows.begun(list(prompts), seeds, rules.max_tokens, positions[which, -1:])
        return cls(model, cache, mask[which], rows, logits[which])

    def draw(self, ends: Tensor, rules: SamplingRules) -> list[EndedResponse]:
        """Draw a token for each row, and return the responses that end with it."""
        rows, last = self._rows, rules.max_tokens - 1
        place = rows.n_tokens.clamp(max=last).unsqueeze(-1)  # what is drawn for rows that are over is ignored
        chosen, of_chosen = _drawn(self._logits, rows.draws.gather(1, place), rules.temperature, rules.top_p)
        rows.tokens.scatter_(1, place, chosen)
        rows.log_probs.scatter_(1, place, of_chosen)
        rows.n_tokens += ~rows.is_over
        is_end = torch.isin(chosen.squeeze(-1), ends)
        ended = ((is_end | (rows.n_tokens > last)) & ~rows.is_over).nonzero().squeeze(-1)
        self._chosen = chosen
        if not len(ended):
            return []
        rows.is_over[ended] = True
        self.n_left -= len(ended)
        few = rows.selected(ended)
        columns = few.numbers, few.tokens, few.log_probs, few.n_tokens, is_end[ended]
        listed = zip(*(column.tolist() for column in columns), strict=True)
        return [
            EndedResponse(number, Response(tuple(tokens[:n]), tuple(log_probs[:n]), not has_end))
            for number, tokens, log_probs, n, has_end in listed
        ]

    def advance(self) -> None:
        """Let the model read the tokens that were drawn."""
        if self.n_left <= _COMPACT_BELOW * len(self._mask):
            self._chosen = self._chosen[~self._rows.is_over]
            self._compact()
        self._mask = torch.cat([self._mask, self._mask.new_ones(len(self._mask), 1)], dim=-1)
        self._rows.at += 1
        self._logits = _next_logits(self._model, self._chosen, self._mask, self._rows.at, self._cache)

    def joined(self, new: _Batch) -> _Batch:
        """Return a batch of the rows that are not over and those of a new batch."""
        logits = torch.cat([self._logits[~self._rows.is_over], new._logits])
        self._compact()
        width = max(self._mask.shape[1], new._mask.shape[1])
        for own, its in zip(self._cache.layers, new._cache.layers, strict=True):
            own.join(its, width)
        mask = torch.cat([pad(each._mask, (width - each._mask.shape[1], 0)) for each in (self, new)])
        return _Batch(self._model, self._cache, mask, self._rows.joined(new._rows), logits)

    def _compact(self) -> None:
        """Drop the rows that are over, and the columns that only they need."""
        kept = (~self._rows.is_over).nonzero().squeeze(-1)
        self._rows = self._rows.selected(kept)
        self._cache.reorder_cache(kept)
        if self.is_joinable:
            width = int(self._rows.at.max()) + 1
            self._mask = self._mask[:, -width:]
            for layer in self._cache.layers:
                layer.narrow(width)
        self._mask = self._mask[kept]


def _next_logits(model: Any, ids: Tensor, mask: Tensor, positions: Tensor, cache: Any) -> Tensor:
    """Return the logits (B, V) of the next tokens."""
    given = {"input_ids": ids, "position_ids": positions, "use_cache": True, "logits_to_keep": 1}
    if "cache_params" in _parameters(type(model)):  # type: ignore[arg-type]  # classes are hashable
        # A recurrent model has another name for its state, would ignore one by the usual name without a word, and has
        # no use for a mask of what it has read before.
        output = model(**given, cache_params=cache, attention_mask=mask[:, -ids.shape[1] :])
    else:
        output = model(**given, past_key_values=cache, attention_mask=mask)
    logits: Tensor = output.logits[:, -1]
    return logits


@cache  # by class, as inspecting a signature in each step would cost a small model a percent of its time
def _parameters(kind: type[Any]) -> frozenset[str]:
    return frozenset(signature(kind.forward).parameters)


def _drawn(logits: Tensor, uniform: Tensor, temperature: float, top_p: float = 1.0) -> tuple[Tensor, Tensor]:
    """Return per row the token at which the cumulated distribution reaches `uniform`, in [0, 1), and its log-prob.

    All but the logits (B, V) are (B, 1).
    """
    n_rows = max(1, _CACHED_LOGITS // logits.shape[-1]) if logits.device.type == "cpu" else len(logits)
    some = zip(logits.split(n_rows), uniform.split(n_rows), strict=True)
    chosen, log_probs = zip(*(_drawn_at_once(*each, temperature, top_p) for each in some), strict=True)
    return torch.cat(chosen), torch.cat(log_probs)


def _drawn_at_once(logits: Tensor, uniform: Tensor, temperature: float, top_p: float) -> tuple[Tensor, Tensor]:
    scaled = logits.float() if temperature in (0, 1) else logits.float() / temperature
    if temperature == 0:
        chosen = scaled.argmax(-1, keepdim=True)
        return chosen, scaled.gather(-1, chosen) - scaled.logsumexp(-1, keepdim=True)
    largest = scaled.amax(-1, keepdim=True)
    weights = (scaled - largest).exp_()
    total = weights.sum(-1, keepdim=True)
    if top_p < 1:
        weights = _nucleus(weights / total, top_p)
    # Cumulating blocks first, then the tokens of one block, writes no exact sum for each token.
    blocks = pad(weights, (0, -weights.shape[1] % _BLOCK)).unflatten(-1, (-1, _BLOCK))
    sums = blocks.sum(-1, dtype=uniform.dtype)
    cumulated = sums.cumsum(-1)
    target = uniform * cumulated[:, -1:]
    block = _reached(cumulated, target)
    inside = blocks[torch.arange(len(blocks), device=block.device), block.squeeze(-1)].to(uniform.dtype).cumsum(-1)
    place = _reached(inside, target - cumulated.gather(1, block) + sums.gather(1, block))
    chosen = (block * _BLOCK + place).clamp(max=logits.shape[1] - 1)
    return chosen, scaled.gather(-1, chosen) - largest - total.log()


def _reached(cumulated: Tensor, target: Tensor) -> Tensor:
    """Return the first place (B, 1) at which sums (B, n) exceed a target (B, 1), never one that adds nothing.

    Where the sums are no numbers, as after an update that broke the weights, it is the last one; the loss will say so.
    """
    most = cumulated[:, -1:] * (1 - torch.finfo(cumulated.dtype).eps)
    place = torch.searchsorted(cumulated, target.clamp(min=0).minimum(most), right=True)
    return place.clamp(max=cumulated.shape[-1] - 1)


def _nucleus(probabilities: Tensor, top_p: float) -> Tensor:
    """Keep each row's likeliest tokens that reach `top_p` together, at least one; set others to 0. (rows, tokens)"""
    ranked, order = probabilities.sort(dim=-1, descending=True, stable=True)
    is_out = ranked.cumsum(-1) - ranked >= top_p
    return probabilities.masked_fill(is_out.scatter(-1, order, is_out), 0.0)


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

    def narrow(self, width: int) -> None:
        """Keep the last positions."""
        if self.is_initialized:
            self.keys, self.values = self.keys[..., -width:, :], self.values[..., -width:, :]
            self._buffers = None

    def join(self, other: _PreallocatedLayer, width: int) -> None:
        """Add the rows of another layer; both end at the same position, the last of `width`."""
        if self.is_initialized:
            self.keys = torch.cat([_widened(self.keys, width), _widened(other.keys, width)])
            self.values = torch.cat([_widened(self.values, width), _widened(other.values, width)])
            self._buffers = None

    @staticmethod
    def _grown(held: Tensor, like: Tensor, end: int) -> Tensor:
        rows, heads, _, size = like.shape
        buffer = like.new_empty(rows, heads, end + max(_MIN_GROWTH, end // 2), size)
        if held.numel():
            buffer[..., : held.shape[-2], :] = held
        return buffer


def _widened(held: Tensor, width: int) -> Tensor:
    """Return (rows, heads, width, size), with zeros at the first positions: no masked value may be nan."""
    return pad(held, (0, 0, width - held.shape[-2], 0))
