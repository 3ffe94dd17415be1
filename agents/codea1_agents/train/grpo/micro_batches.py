"""Cuts the responses of an optimiser step into parts that are computed one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from codea1_agents.train.grpo.columns import Column

Batch = Mapping[str, Tensor]

_OF_PROMPTS = (Column.PROMPT_IDS, Column.PROMPT_MASK)
_OF_RESPONSES = (Column.RESPONSE_IDS, Column.RESPONSE_MASK, Column.SAMPLED_LOG_PROBS, Column.OLD_LOG_PROBS)


@dataclass(frozen=True, slots=True)
class Budget:
    """What one forward pass may hold at most."""

    rows: int = 0
    """Responses; 0: any number."""
    tokens: int = 0
    """Tokens, with padding. A longer response is a part of its own. 0: any number."""
    prompt_once: bool = False
    """Whether the responses to one prompt share its tokens. Otherwise each response has its own copy of the prompt."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows of a batch, by number, and the sizes of the pass that computes them."""

    rows: tuple[int, ...]
    n_prompts: int
    prompt: int
    """Tokens of the longest prompt."""
    response: int
    """Tokens of the longest response."""

    def joined(self, other: _Part, n_prompts: int) -> _Part:
        return _Part(
            self.rows + other.rows, n_prompts, max(self.prompt, other.prompt), max(self.response, other.response)
        )

    def fits(self, budget: Budget) -> bool:
        n_rows = len(self.rows)
        n_prompts = self.n_prompts if budget.prompt_once else n_rows
        n_tokens = n_prompts * self.prompt + n_rows * self.response
        return (not budget.rows or n_rows <= budget.rows) and (not budget.tokens or n_tokens <= budget.tokens)


def micro_batches(batch: Batch, budget: Budget) -> list[dict[str, Tensor]]:
    """Return parts of a batch within a budget, each without columns that are padding in all of its rows.

    Rows of similar length share a part, which saves padding. With `prompt_once`, responses to one prompt share a part
    as far as the budget allows.
    """
    prompts, responses = (batch[mask].sum(-1).tolist() for mask in (Column.PROMPT_MASK, Column.RESPONSE_MASK))
    rows = [_Part((row,), 1, *lengths) for row, lengths in enumerate(zip(prompts, responses, strict=True))]
    parts = _by_prompt(rows, batch[Column.PROMPT_NUMBER].tolist(), budget) if budget.prompt_once else rows
    return [_selected(batch, part.rows) for part in _packed(parts, budget)]


def nothing_of(part: Batch) -> dict[str, Tensor]:
    """Return the first row of a part with weight 0: a pass that learns nothing."""
    row = _trimmed({name: column[:1] for name, column in part.items()})
    return {**row, Column.TOKEN_WEIGHT: torch.zeros_like(row[Column.TOKEN_WEIGHT])}


def _by_prompt(rows: Sequence[_Part], prompt_numbers: Sequence[int], budget: Budget) -> list[_Part]:
    """Return the responses to each prompt, in several parts where they exceed the budget."""
    by_prompt: dict[int, list[_Part]] = {}
    for row, number in zip(rows, prompt_numbers, strict=True):
        by_prompt.setdefault(number, []).append(row)
    return [part for group in by_prompt.values() for part in _packed(group, budget, is_one_prompt=True)]


def _packed(parts: Sequence[_Part], budget: Budget, *, is_one_prompt: bool = False) -> list[_Part]:
    """Return the parts, joined with their neighbours in length as far as the budget allows."""
    found: list[_Part] = []
    for part in sorted(parts, key=lambda each: each.prompt + each.response):
        if found:
            joined = found[-1].joined(part, 1 if is_one_prompt else found[-1].n_prompts + part.n_prompts)
            if joined.fits(budget):
                found[-1] = joined
                continue
        found.append(part)
    return found


def _selected(batch: Batch, rows: Sequence[int]) -> dict[str, Tensor]:
    return _trimmed({name: column[list(rows)] for name, column in batch.items()})


def _trimmed(batch: dict[str, Tensor]) -> dict[str, Tensor]:
    prompt, response = (int(batch[mask].sum(-1).max()) for mask in (Column.PROMPT_MASK, Column.RESPONSE_MASK))
    for name in _OF_PROMPTS:
        batch[name] = batch[name][:, batch[name].shape[1] - prompt :]
    for name in filter(batch.__contains__, _OF_RESPONSES):
        batch[name] = batch[name][:, :response]
    return batch
