"""Pads prompts and responses to the columns of token ids of a learner's batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from codea1_agents.train.grpo.columns import Column
from codea1_agents.train.grpo.sampling import Rows, left_padded

_PAD = 0  # any token: the masks are False there


def token_columns(
    prompts: Sequence[tuple[int, ...]], responses: Rows, device: torch.device | str = "cpu"
) -> dict[str, Tensor]:
    """Return the columns of the ids, masks and numbers of prompts and responses, with the shapes of `Column`.

    Args:
        prompts: (B,) token ids, none empty.
        responses: (B,) token ids, none empty.
        device: of the columns.
    """
    ids, mask = left_padded(prompts, _PAD)
    lengths = torch.tensor(list(map(len, responses)))
    numbers = {prompt: number for number, prompt in enumerate(dict.fromkeys(prompts))}
    return {
        Column.PROMPT_IDS: ids.to(device),
        Column.PROMPT_MASK: mask.to(device),
        Column.PROMPT_NUMBER: torch.tensor([numbers[prompt] for prompt in prompts], device=device),
        Column.RESPONSE_IDS: right_padded(responses, torch.int64).to(device),
        Column.RESPONSE_MASK: (torch.arange(int(lengths.max())) < lengths.unsqueeze(-1)).to(device),
    }


def right_padded(rows: Sequence[Sequence[float]], dtype: torch.dtype) -> Tensor:
    """Return rows of numbers (B, R), padded on the right with 0."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[0] * (width - len(row))] for row in rows], dtype=dtype)
