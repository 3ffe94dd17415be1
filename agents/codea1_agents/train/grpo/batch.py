"""From the responses of an iteration to what a learner computes: steps, shards, padded columns, micro-batches."""

from __future__ import annotations

import hashlib
import heapq
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from codea1_agents.models.sampling import Response, Rows, left_padded
from codea1_agents.train.grpo.advantages import over_batch


class Column(StrEnum):
    """Columns of a learner's batch: B responses; P and R are the longest prompt and the longest response."""

    PROMPT_IDS = "prompt_ids"
    """(B, P) int64, left-padded."""
    PROMPT_MASK = "prompt_mask"
    """(B, P) bool."""
    RESPONSE_IDS = "response_ids"
    """(B, R) int64, right-padded."""
    RESPONSE_MASK = "response_mask"
    """(B, R) bool."""
    SAMPLED_LOG_PROBS = "sampled_log_probs"
    """(B, R) float32, of the policy that sampled them."""
    OLD_LOG_PROBS = "old_log_probs"
    """(B, R) float32, of the policy in training before its first update of the iteration."""
    PROMPT_NUMBER = "prompt_number"
    """(B,) int64: the same for rows with the same prompt."""
    ADVANTAGES = "advantages"
    """(B, R) float32, of each token."""
    TOKEN_WEIGHT = "token_weight"
    """(B,) float32: weight of each token of the response in the loss."""
    MINIBATCH = "minibatch"
    """(B,) int64: number of the optimiser step in an epoch."""
    LOG_PROBS = "log_probs"
    """(B, R) float32, of the policy in training."""
    REFERENCE_LOG_PROBS = "reference_log_probs"
    """(B, R) float32, of the frozen reference."""
    ENTROPY = "entropy"
    """(B, R) float32, of each token."""


Batch = Mapping[str, Tensor]
"""Columns by name."""
_OF_PROMPTS = (Column.PROMPT_IDS, Column.PROMPT_MASK)
_OF_RESPONSES = (
    Column.RESPONSE_IDS,
    Column.RESPONSE_MASK,
    Column.SAMPLED_LOG_PROBS,
    Column.OLD_LOG_PROBS,
    Column.ADVANTAGES,
)


@dataclass(frozen=True, slots=True)
class ScoredResponse:
    """One reply and its advantage. It is all that a learner gets: to RLlib, an episode of one step."""

    role: str
    """`coder` or `tester`."""
    agent: str
    """Name in the environment."""
    module: str
    """Id of the module that wrote it and that it trains."""
    problem_id: str
    prompt: tuple[int, ...]
    response: Response
    advantage: float
    """Of the whole reply."""
    token_advantages: Sequence[float] | None = None
    """(n,), of each of its tokens; None: `advantage` for all."""
    token_weight: float = 0.0
    """Weight of each of its tokens in the loss. `planned` sets it, as it depends on the whole batch."""
    minibatch: int = 0
    """Number of its optimiser step in an epoch. `planned` sets it."""

    @property
    def n_prompt(self) -> int:
        """Tokens of the prompt."""
        return len(self.prompt)

    @property
    def n_tokens(self) -> int:
        """Tokens of the response."""
        return self.response.n_tokens

    def __len__(self) -> int:
        """Return 1: the action is the whole response."""
        return 1

    def without_weight(self) -> ScoredResponse:
        """Return a row that trains nothing and costs next to nothing."""
        nothing = Response(self.response.tokens[:1], self.response.log_probs[:1], is_cut=False)
        nobody = replace(self, prompt=self.prompt[-1:], response=nothing)
        return replace(nobody, advantage=0.0, token_advantages=None, token_weight=0.0)

    def advantages(self) -> Sequence[float]:
        """Return the advantage of each token."""
        return self.token_advantages or [self.advantage] * len(self.response.tokens)


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """What a plan needs of a response. Its tokens are in its tree, which Ray keeps on the node of its runner."""

    role: str
    module: str
    task: int
    """Number of its tree's task."""
    number: int
    """Its place among the responses of the tree that train (`RolledTree.trained`)."""
    prompt: bytes
    """Digest of the prompt."""
    n_prompt: int
    """Tokens of the prompt."""
    n_tokens: int
    """Tokens of the response."""
    advantage: float
    token_weight: float = 0.0
    minibatch: int = 0

    @classmethod
    def of(cls, task: int, number: int, response: ScoredResponse) -> StoredResponse:
        """Return what a plan needs of a response."""
        prompt = hashlib.blake2b(array("q", response.prompt).tobytes(), digest_size=16).digest()
        sizes = response.n_prompt, response.n_tokens
        return cls(response.role, response.module, task, number, prompt, *sizes, response.advantage)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle faster than frozen dataclasses do: a driver unpickles half a million of them."""
        return StoredResponse, tuple(getattr(self, name) for name in StoredResponse.__slots__)

    def without_weight(self) -> StoredResponse:
        """Return a row that trains nothing."""
        return replace(self, advantage=0.0, token_weight=0.0)

    def planned(self, response: ScoredResponse) -> ScoredResponse:
        """Return the response itself with what was planned for it."""
        found = response if self.token_weight else response.without_weight()
        return replace(found, advantage=self.advantage, token_weight=self.token_weight, minibatch=self.minibatch)


_Row = TypeVar("_Row", ScoredResponse, StoredResponse)


def with_advantages_over_batch(responses: Sequence[_Row], role: str) -> list[_Row]:
    """Return all responses, those of one role with advantages that are normalised over them (`over_batch`)."""
    mine = [each for each in responses if each.role == role]
    advantages = iter(over_batch(np.array([each.advantage for each in mine])).tolist())
    return [replace(each, advantage=next(advantages)) if each.role == role else each for each in responses]


def planned(
    responses: Sequence[_Row],
    n_minibatches: int,
    seed: Sequence[int],
    together: Callable[[Any], object] = attrgetter("prompt"),
) -> list[_Row]:
    """Return the responses with their optimiser step and with the token weights that make its loss a mean over tokens.

    Responses to one prompt share their step, so that the learner may compute the prompt once. Each token of a module in
    a step has the same weight, so long responses count more than short ones (verl's `token-mean`, which the official
    code uses). The plan covers the whole batch, so it does not depend on the number of learners.

    Args:
        responses: in an order that does not depend on the runners.
        n_minibatches: optimiser steps per epoch; a module with fewer prompts has fewer steps.
        seed: decides which prompts share an optimiser step.
        together: responses for which it is equal share their step: those to a prompt, or, with several turns, those of
            a task, since the turns of a trajectory have one advantage.
    """
    found: list[_Row] = []
    for number, module in enumerate(sorted({each.module for each in responses})):
        mine = _grouped((each for each in responses if each.module == module), together)
        order = np.random.default_rng([*seed, number]).permutation(len(mine)) if n_minibatches > 1 else range(len(mine))
        for minibatch in range(n_minibatches):
            step = [each for position in sorted(order[minibatch::n_minibatches]) for each in mine[position]]
            n_tokens = sum(each.n_tokens for each in step)
            found += [replace(each, token_weight=1.0 / n_tokens, minibatch=minibatch) for each in step]
    return found


def shards(responses: Sequence[_Row], n_learners: int) -> list[list[_Row]]:
    """Distribute planned responses over learners: each gets about as many tokens of each module in each step.

    Responses to one prompt go to one learner, and their prompt counts once. Each learner gets a row of each step of
    each module, because learners average their gradients and wait for each other. A learner for which no row is left
    gets one of weight 0.
    """
    found: list[list[_Row]] = [[] for _ in range(n_learners)]
    for step in sorted({(each.module, each.minibatch) for each in responses}):
        of_step = [each for each in responses if (each.module, each.minibatch) == step]
        loads = [(0, learner) for learner in range(n_learners)]  # a heap: of equal loads, the first learner's
        mine: list[list[_Row]] = [[] for _ in range(n_learners)]
        by_prompt = _grouped(of_step, attrgetter("prompt"))
        for group in sorted(by_prompt, key=lambda each: -_n_tokens(each)):  # a stable sort
            load, learner = loads[0]
            heapq.heapreplace(loads, (load + _n_tokens(group), learner))
            mine[learner] += group
        for learner, rows in enumerate(mine):
            found[learner] += rows or [of_step[0].without_weight()]
    return found


def _grouped(responses: Iterable[_Row], key: Callable[[Any], object]) -> list[list[_Row]]:
    groups: dict[object, list[_Row]] = {}
    for each in responses:
        groups.setdefault(key(each), []).append(each)
    return list(groups.values())


def _n_tokens(group: Sequence[ScoredResponse] | Sequence[StoredResponse]) -> int:
    return group[0].n_prompt + sum(each.n_tokens for each in group)


def padded_batch(responses: Sequence[ScoredResponse]) -> dict[str, Tensor]:
    """Return the columns of responses of one module, with the shapes of `Column`."""
    return {
        **token_columns([each.prompt for each in responses], [each.response.tokens for each in responses]),
        Column.SAMPLED_LOG_PROBS: right_padded([each.response.log_probs for each in responses], torch.float32),
        Column.ADVANTAGES: right_padded([each.advantages() for each in responses], torch.float32),
        Column.MINIBATCH: torch.tensor([each.minibatch for each in responses]),
        Column.TOKEN_WEIGHT: torch.tensor([each.token_weight for each in responses], dtype=torch.float32),
    }


def token_columns(prompts: Sequence[tuple[int, ...]], responses: Rows) -> dict[str, Tensor]:
    """Return the columns of the ids, masks and numbers of prompts and responses, with the shapes of `Column`.

    Args:
        prompts: (B,) token ids, none empty.
        responses: (B,) token ids, none empty.
    """
    ids, mask = left_padded(prompts)
    lengths = torch.tensor(list(map(len, responses)))
    numbers = {prompt: number for number, prompt in enumerate(dict.fromkeys(prompts))}
    return {
        Column.PROMPT_IDS: ids,
        Column.PROMPT_MASK: mask,
        Column.PROMPT_NUMBER: torch.tensor([numbers[prompt] for prompt in prompts]),
        Column.RESPONSE_IDS: right_padded(responses, torch.int64),
        Column.RESPONSE_MASK: torch.arange(int(lengths.max())) < lengths.unsqueeze(-1),
    }


def right_padded(rows: Sequence[Sequence[float]], dtype: torch.dtype) -> Tensor:
    """Return rows of numbers (B, R), padded on the right with 0."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[0] * (width - len(row))] for row in rows], dtype=dtype)


@dataclass(frozen=True, slots=True)
class Budget:
    """What one forward pass may hold at most."""

    rows: int = 0
    """Responses; 0: any number."""
    tokens: int = 0
    """Tokens, with padding. A longer response is a part of its own. 0: any number."""
    prompt_once: bool = False
    """Whether the responses to one prompt share its tokens. Otherwise each response has its own copy of the prompt."""
    packed: bool = False
    """Whether there is no padding."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows of a batch, by number, and the sizes of the pass that computes them."""

    rows: tuple[int, ...]
    n_prompts: int
    prompt: int
    """Tokens of the longest prompt."""
    response: int
    """Tokens of the longest response."""
    prompts: int
    """Tokens of all prompts."""
    responses: int
    """Tokens of all responses."""

    @classmethod
    def of(cls, row: int, prompt: int, response: int) -> _Part:
        return cls((row,), 1, prompt, response, prompt, response)

    def joined(self, other: _Part, *, is_one_prompt: bool) -> _Part:
        return _Part(
            self.rows + other.rows,
            1 if is_one_prompt else self.n_prompts + other.n_prompts,
            max(self.prompt, other.prompt),
            max(self.response, other.response),
            self.prompts if is_one_prompt else self.prompts + other.prompts,
            self.responses + other.responses,
        )

    def fits(self, budget: Budget) -> bool:
        n_rows = len(self.rows)
        n_prompts = self.n_prompts if budget.prompt_once else n_rows
        n_tokens = self.prompts + self.responses if budget.packed else n_prompts * self.prompt + n_rows * self.response
        return (not budget.rows or n_rows <= budget.rows) and (not budget.tokens or n_tokens <= budget.tokens)


def micro_batches(batch: Batch, budget: Budget) -> list[dict[str, Tensor]]:
    """Return parts of a batch within a budget, each without columns that are padding in all of its rows.

    Rows of similar length share a part, which saves padding. With `prompt_once`, responses to one prompt share a part
    as far as the budget allows.
    """
    prompts, responses = (batch[mask].sum(-1).tolist() for mask in (Column.PROMPT_MASK, Column.RESPONSE_MASK))
    rows = [_Part.of(row, *lengths) for row, lengths in enumerate(zip(prompts, responses, strict=True))]
    parts = _packed_by_prompt(rows, batch[Column.PROMPT_NUMBER].tolist(), budget) if budget.prompt_once else rows
    return [_selected(batch, part.rows) for part in _packed(parts, budget)]


def nothing_of(part: Batch) -> dict[str, Tensor]:
    """Return the first row of a part with weight 0: a pass that learns nothing."""
    row = _trimmed({name: column[:1] for name, column in part.items()})
    return {**row, Column.TOKEN_WEIGHT: torch.zeros_like(row[Column.TOKEN_WEIGHT])}


def _packed_by_prompt(rows: Sequence[_Part], prompt_numbers: Sequence[int], budget: Budget) -> list[_Part]:
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
            joined = found[-1].joined(part, is_one_prompt=is_one_prompt)
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
