"""Turns responses into padded batches per module, and into shards of about equal size for several learners."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from ray.rllib.connectors.connector_v2 import ConnectorV2
from torch import Tensor

from codea1_agents.train.grpo.columns import Column
from codea1_agents.train.grpo.episodes import ScoredResponse, response_of
from codea1_agents.train.grpo.part_advantages import over_batch
from codea1_agents.train.grpo.sampling import Response
from codea1_agents.train.grpo.token_columns import right_padded, token_columns


def with_advantages_over_batch(responses: Sequence[ScoredResponse], role: str) -> list[ScoredResponse]:
    """Return all responses, those of one role with advantages that are normalised over them (`over_batch`)."""
    mine = [each for each in responses if each.role == role]
    advantages = iter(over_batch(np.array([each.advantage for each in mine])).tolist())
    return [replace(each, advantage=next(advantages)) if each.role == role else each for each in responses]


def planned(responses: Sequence[ScoredResponse], n_minibatches: int, seed: Sequence[int]) -> list[ScoredResponse]:
    """Return the responses with their optimiser step and with the token weights that make its loss a mean over tokens.

    Responses to one prompt share their step, so that the learner may compute the prompt once. Each token of a module in
    a step has the same weight, so long responses count more than short ones (verl's `token-mean`, which the official
    code uses). The plan covers the whole batch, so it does not depend on the number of learners.

    Args:
        responses: in an order that does not depend on the runners.
        n_minibatches: optimiser steps per epoch; a module with fewer prompts has fewer steps.
        seed: decides which prompts share an optimiser step.
    """
    found: list[ScoredResponse] = []
    for number, module in enumerate(sorted({each.module for each in responses})):
        mine = _by_prompt(each for each in responses if each.module == module)
        order = np.random.default_rng([*seed, number]).permutation(len(mine)) if n_minibatches > 1 else range(len(mine))
        for minibatch in range(n_minibatches):
            step = [each for position in sorted(order[minibatch::n_minibatches]) for each in mine[position]]
            n_tokens = sum(len(each.response.tokens) for each in step)
            found += [replace(each, token_weight=1.0 / n_tokens, minibatch=minibatch) for each in step]
    return found


def shards(responses: Sequence[ScoredResponse], n_learners: int) -> list[list[ScoredResponse]]:
    """Distribute planned responses over learners: each gets about as many tokens of each module in each step.

    Responses to one prompt go to one learner, and their prompt counts once. Each learner gets a row of each step of
    each module, because learners average their gradients and wait for each other. A learner for which no row is left
    gets one of weight 0.
    """
    found: list[list[ScoredResponse]] = [[] for _ in range(n_learners)]
    for step in sorted({(each.module, each.minibatch) for each in responses}):
        of_step = [each for each in responses if (each.module, each.minibatch) == step]
        loads = [(0, learner) for learner in range(n_learners)]  # a heap: of equal loads, the first learner's
        mine: list[list[ScoredResponse]] = [[] for _ in range(n_learners)]
        for group in sorted(_by_prompt(of_step), key=lambda each: -_n_tokens(each)):  # a stable sort
            load, learner = loads[0]
            heapq.heapreplace(loads, (load + _n_tokens(group), learner))
            mine[learner] += group
        for learner, rows in enumerate(mine):
            found[learner] += rows or [_of_weight_zero(of_step[0])]
    return found


def _by_prompt(responses: Iterable[ScoredResponse]) -> list[list[ScoredResponse]]:
    found: dict[tuple[int, ...], list[ScoredResponse]] = {}
    for each in responses:
        found.setdefault(each.prompt, []).append(each)
    return list(found.values())


def _n_tokens(group: Sequence[ScoredResponse]) -> int:
    return len(group[0].prompt) + sum(len(each.response.tokens) for each in group)


def _of_weight_zero(like: ScoredResponse) -> ScoredResponse:
    nothing = Response(like.response.tokens[:1], like.response.log_probs[:1], is_cut=False)
    return replace(like, prompt=like.prompt[-1:], response=nothing, advantage=0.0, token_weight=0.0)


def padded_batch(responses: Sequence[ScoredResponse], device: torch.device | str = "cpu") -> dict[str, Tensor]:
    """Return the columns of responses of one module, with the shapes of `Column`."""
    tokens = [each.response.tokens for each in responses]
    return {
        **token_columns([each.prompt for each in responses], tokens, device),
        Column.SAMPLED_LOG_PROBS: right_padded([each.response.log_probs for each in responses], torch.float32).to(
            device
        ),
        Column.ADVANTAGES: torch.tensor([each.advantage for each in responses], dtype=torch.float32, device=device),
        Column.MINIBATCH: torch.tensor([each.minibatch for each in responses], device=device),
        Column.TOKEN_WEIGHT: torch.tensor(
            [each.token_weight for each in responses], dtype=torch.float32, device=device
        ),
    }


class ResponsesToBatch(ConnectorV2):  # type: ignore[misc]  # Ray has no types
    """The learner's only connector: turns episodes into one padded batch per module."""

    def __call__(
        self,
        *,
        rl_module: Any,
        batch: Mapping[str, Any],
        episodes: Sequence[Any],
        explore: bool | None = None,
        shared_data: dict[str, Any] | None = None,
        metrics: Any = None,
        **_: Any,
    ) -> dict[str, dict[str, Tensor]]:
        """Return the columns of each module that has a response."""
        by_module: dict[str, list[ScoredResponse]] = {}
        for episode in episodes:
            scored = response_of(episode)
            by_module.setdefault(scored.module, []).append(scored)
        return {
            module: padded_batch(responses, next(rl_module[module].parameters()).device)
            for module, responses in by_module.items()
        }
