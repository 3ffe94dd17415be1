"""The plan of an update: whose tokens weigh what, in which step, on which learner, in which pass."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.advantages import z
from tests.support.grpo import scored

pytest.importorskip("ray", reason="Ray is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")
from codea1_agents.train.grpo.batch import (  # noqa: E402
    Budget,
    Column,
    StoredResponse,
    micro_batches,
    nothing_of,
    padded_batch,
    planned,
    shards,
    with_advantages_over_batch,
)

RESPONSES = st.lists(
    st.builds(scored, st.sampled_from(["coder", "tester"]), st.integers(1, 9), st.integers(1, 9)), min_size=1
)


@given(RESPONSES, st.integers(1, 3), st.integers(1, 4))
@settings(max_examples=50)
def test_every_token_of_a_step_weighs_the_same_whatever_the_number_of_learners(responses, n_minibatches, n_learners):
    shares = shards(planned(responses, n_minibatches, (0, 1)), n_learners)
    rows = [each for shard in shares for each in shard if each.token_weight > 0]
    assert Counter(each.prompt for each in rows) == Counter(each.prompt for each in responses)
    for step in {(each.module, each.minibatch) for each in rows}:
        mine = [each for each in rows if (each.module, each.minibatch) == step]
        n_tokens = sum(len(each.response.tokens) for each in mine)
        assert {each.token_weight for each in mine} == {1.0 / n_tokens}
        for shard in shares:  # or the others would wait for ever
            assert any((each.module, each.minibatch) == step for each in shard)


@given(st.lists(st.integers(1, 500), min_size=8, max_size=40))
@settings(max_examples=50)
def test_learners_get_about_as_many_tokens(lengths: list[int]) -> None:
    responses = [replace(scored("coder", 1, n), prompt=(row,)) for row, n in enumerate(lengths)]
    shares = shards(planned(responses, 1, (0,)), 3)
    loads = [sum(1 + len(each.response.tokens) for each in shard) for shard in shares]
    assert max(loads) - min(loads) <= max(lengths) + 1


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(1, 3), st.integers(1, 4))
@settings(max_examples=50)
def test_responses_to_one_prompt_share_step_and_learner(which: list[int], n_minibatches: int, n_learners: int) -> None:
    responses = [replace(scored("coder", 3, 1 + row), prompt=(3, 4 + number)) for row, number in enumerate(which)]
    places: dict[tuple[int, ...], set[tuple[int, int]]] = {}
    for number, shard in enumerate(shards(planned(responses, n_minibatches, (0,)), n_learners)):
        for each in shard:
            if each.token_weight > 0:
                places.setdefault(each.prompt, set()).add((each.minibatch, number))
    assert len(places) == len(set(which))
    assert all(len(found) == 1 for found in places.values())


@given(
    RESPONSES.flatmap(lambda drawn: st.lists(st.sampled_from(drawn), min_size=1, max_size=20)),
    st.integers(1, 3),
    st.integers(1, 4),
)
@settings(max_examples=50)
def test_a_plan_needs_no_tokens(responses: list, n_minibatches: int, n_learners: int) -> None:
    responses = [replace(each, advantage=float(row)) for row, each in enumerate(responses)]
    stored = [StoredResponse.of(row // 3, row % 3, each) for row, each in enumerate(responses)]
    scaled = [with_advantages_over_batch(rows, "tester") for rows in (responses, stored)]
    expected, found = (shards(planned(rows, n_minibatches, (0, 1)), n_learners) for rows in scaled)
    plan = [[row.planned(responses[3 * row.task + row.number]) for row in shard] for shard in found]
    assert plan == expected


def test_each_iterations_plan_is_its_own_and_the_same_for_the_same_seed() -> None:
    responses = [scored("coder", 5, n) for n in range(1, 30)]
    first, again, other = (planned(responses, 2, (0, n)) for n in (0, 0, 1))
    assert first == again
    assert {e.response for e in first if not e.minibatch} != {e.response for e in other if not e.minibatch}


def test_one_row_over_two_learners_is_a_row_and_one_that_weighs_nothing() -> None:
    (one,), (other,) = shards(planned([scored("tester", 5, 4, advantage=-1.5)], 1, (0,)), 2)
    assert (one.token_weight, other.token_weight, other.advantage) == (0.25, 0.0, 0.0)
    assert len(other.response.tokens) == len(other.prompt) == 1  # costs next to nothing


def test_d22_rewards_and_advantages_are_float32_however_the_model_computes() -> None:
    exact = 0.1234567  # bfloat16 has three digits
    batch = padded_batch([scored("coder", 2, 3, advantage=exact)])
    assert batch[Column.ADVANTAGES].dtype is torch.float32
    assert batch[Column.ADVANTAGES].unique().item() == pytest.approx(exact, rel=1e-6)
    assert batch[Column.TOKEN_WEIGHT].dtype is batch[Column.SAMPLED_LOG_PROBS].dtype is torch.float32


@given(st.lists(st.tuples(st.sampled_from(["coder", "tester"]), st.integers(-4, 4)), max_size=12))
def test_advantages_of_one_role_are_normalised_over_the_batch(drawn: list[tuple[str, int]]) -> None:
    responses = [scored(role, 1, 2, advantage=float(value)) for role, value in drawn]
    found = with_advantages_over_batch(responses, "tester")
    assert [replace(each, advantage=0.0) for each in found] == [replace(each, advantage=0.0) for each in responses]
    assert [each for each in found if each.role == "coder"] == [each for each in responses if each.role == "coder"]
    before = [each.advantage for each in responses if each.role == "tester"]
    assert [each.advantage for each in found if each.role == "tester"] == pytest.approx(z(before))


FLAG = st.booleans()
BUDGETS = st.builds(Budget, rows=st.integers(0, 4), tokens=st.integers(0, 40), prompt_once=FLAG, packed=FLAG)


def responses_to(prompts: list[tuple[int, ...]], which: list[int], lengths: list[int]) -> list[Any]:
    """One response per number of a prompt; its advantage is its number."""
    pairs = enumerate(zip(which, lengths, strict=False))
    rows = [(prompts[n % len(prompts)], scored("coder", 1, length, advantage=row)) for row, (n, length) in pairs]
    return [replace(each, prompt=prompt) for prompt, each in rows]


def cost(part: dict[str, Any], *, prompt_once: bool, packed: bool) -> int:
    n_rows, prompt = part[Column.PROMPT_IDS].shape
    if packed:
        lengths = dict(enumerate(part[Column.PROMPT_MASK].sum(-1).tolist()))
        if prompt_once:
            lengths = {part[Column.PROMPT_NUMBER].tolist()[row]: length for row, length in lengths.items()}
        return int(sum(lengths.values()) + part[Column.RESPONSE_MASK].sum())
    n_prompts = len(part[Column.PROMPT_NUMBER].unique()) if prompt_once else n_rows
    return int(n_prompts * prompt + n_rows * part[Column.RESPONSE_IDS].shape[1])


@given(
    prompts=st.lists(st.lists(st.integers(3, 5), min_size=1, max_size=9).map(tuple), min_size=1, max_size=4),
    which=st.lists(st.integers(0, 3), min_size=1, max_size=12),
    lengths=st.lists(st.integers(1, 9), min_size=12, max_size=12),
    budget=BUDGETS,
)
def test_parts_hold_every_row_once_within_their_budget(prompts, which, lengths, budget):
    rows = responses_to(prompts, which, lengths)
    found = micro_batches(padded_batch(rows), budget)
    assert sorted(int(row) for part in found for row in part[Column.ADVANTAGES][:, 0]) == list(range(len(rows)))
    for part in found:
        n_rows = len(part[Column.PROMPT_IDS])
        n_tokens = cost(part, prompt_once=budget.prompt_once, packed=budget.packed)
        assert n_rows <= (budget.rows or n_rows)
        assert n_rows == 1 or n_tokens <= (budget.tokens or n_tokens)
        for row, number in enumerate(part[Column.ADVANTAGES][:, 0].long().tolist()):
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


def test_advantages_that_are_equal_for_all_tokens_make_the_batch_of_a_whole_reply() -> None:
    whole = [scored("coder", 2, 5, advantage=0.7), scored("coder", 3, 2, advantage=-1.25)]
    equal = [[each.advantage] * len(each.response.tokens) for each in whole]
    by_token = [replace(e, advantage=9.0, token_advantages=row) for e, row in zip(whole, equal, strict=True)]
    one, other = padded_batch(whole), padded_batch(by_token)
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    # Prompts end together, and responses begin together.
    assert one[Column.PROMPT_MASK].int().tolist() == [[0, 1, 1], [1, 1, 1]]
    assert one[Column.RESPONSE_MASK].int().tolist() == [[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]]
