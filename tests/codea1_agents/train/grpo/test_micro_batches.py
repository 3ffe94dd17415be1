"""Parts of a batch hold each row once, within their budget."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.grpo import scored

pytest.importorskip("ray", reason="Ray is not installed")
from codea1_agents.train.grpo.batches import padded_batch
from codea1_agents.train.grpo.columns import Column
from codea1_agents.train.grpo.micro_batches import Budget, micro_batches, nothing_of

BUDGETS = st.builds(Budget, rows=st.integers(0, 4), tokens=st.integers(0, 40), prompt_once=st.booleans())


def responses_to(prompts: list[tuple[int, ...]], which: list[int], lengths: list[int]) -> list[Any]:
    """One response per number of a prompt; its advantage is its number."""
    pairs = enumerate(zip(which, lengths, strict=False))
    rows = [
        (prompts[number % len(prompts)], scored("coder", 1, length, advantage=row)) for row, (number, length) in pairs
    ]
    return [replace(each, prompt=prompt) for prompt, each in rows]


def cost(part: dict[str, Any], *, prompt_once: bool) -> int:
    n_rows, prompt = part[Column.PROMPT_IDS].shape
    n_prompts = len(part[Column.PROMPT_NUMBER].unique()) if prompt_once else n_rows
    return int(n_prompts * prompt + n_rows * part[Column.RESPONSE_IDS].shape[1])


@given(
    prompts=st.lists(st.lists(st.integers(3, 5), min_size=1, max_size=9).map(tuple), min_size=1, max_size=4),
    which=st.lists(st.integers(0, 3), min_size=1, max_size=12),
    lengths=st.lists(st.integers(1, 9), min_size=12, max_size=12),
    budget=BUDGETS,
)
def test_parts_hold_every_row_once_within_their_budget(
    prompts: list[tuple[int, ...]], which: list[int], lengths: list[int], budget: Budget
) -> None:
    rows = responses_to(prompts, which, lengths)
    found = micro_batches(padded_batch(rows), budget)
    assert sorted(int(row) for part in found for row in part[Column.ADVANTAGES]) == list(range(len(rows)))
    for part in found:
        n_rows, n_tokens = len(part[Column.PROMPT_IDS]), cost(part, prompt_once=budget.prompt_once)
        assert n_rows <= (budget.rows or n_rows)
        assert n_rows == 1 or n_tokens <= (budget.tokens or n_tokens)
        for row, number in enumerate(part[Column.ADVANTAGES].long().tolist()):
            kept = part[Column.PROMPT_IDS][row][part[Column.PROMPT_MASK][row]].tolist()
            assert tuple(kept) == rows[number].prompt
            kept = part[Column.RESPONSE_IDS][row][part[Column.RESPONSE_MASK][row]].tolist()
            assert tuple(kept) == rows[number].response.tokens


def test_responses_to_one_prompt_share_a_part_unless_they_exceed_the_budget() -> None:
    rows = responses_to([(3, 4, 5, 6), (7, 8)], [0, 1, 0, 1, 0, 1], [2] * 6)
    for budget, n_parts in [(Budget(rows=3), 2), (Budget(tokens=10), 2), (Budget(tokens=8), 3), (Budget(), 1)]:
        parts = micro_batches(padded_batch(rows), replace(budget, prompt_once=True))
        assert len(parts) == n_parts
        if n_parts == 2:
            assert all(len(part[Column.PROMPT_NUMBER].unique()) == 1 for part in parts)


def test_a_pass_that_learns_nothing_is_one_row_of_weight_zero() -> None:
    (part,) = micro_batches(padded_batch([scored("coder", 4, 1), scored("coder", 2, 9)]), Budget())
    nothing = nothing_of({**part, Column.OLD_LOG_PROBS: part[Column.SAMPLED_LOG_PROBS]})
    assert nothing[Column.TOKEN_WEIGHT].tolist() == [0.0]
    assert nothing[Column.PROMPT_IDS].shape[0] == 1
    for name in (Column.RESPONSE_IDS, Column.RESPONSE_MASK, Column.SAMPLED_LOG_PROBS, Column.OLD_LOG_PROBS):
        assert nothing[name].shape == (1, 1), name
