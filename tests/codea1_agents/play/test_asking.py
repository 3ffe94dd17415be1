from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from codea1_agents.measure.turns import sample_turn
from codea1_agents.play.asking import Asker
from codea1_env.errors import AgentUnavailable, UserError
from codea1_env.problems.problem import ProblemSet


def test_every_turn_has_a_seed_and_an_info_of_its_own(toys: ProblemSet, scripted: Callable[..., Any]) -> None:
    agent, asker = scripted(lambda observation, info: "x")
    asker.ask([sample_turn(problem, "coder", k) for problem in toys for k in range(3)])
    assert len(set(agent.seeds)) == 6
    assert len({(info["problem_id"], info["sample"], info["episode_id"]) for _, info in agent.asked}) == 6


def test_a_turns_seed_does_not_depend_on_what_was_asked_before(toys: ProblemSet, scripted: Callable[..., Any]) -> None:
    turns = [sample_turn(toys[0], "coder", k) for k in range(3)]
    whole, asker = scripted(lambda observation, info: "x")
    asker.ask(turns)
    later, other = scripted(lambda observation, info: "x")
    other.ask(turns[2:])
    assert later.seeds == whole.seeds[2:]


def test_one_unavailable_reply_leaves_the_others(toys: ProblemSet, scripted: Callable[..., Any]) -> None:
    _, asker = scripted(lambda observation, info: None if info["sample"] == 1 else "x")
    replies = asker.ask([sample_turn(toys[0], "coder", k) for k in range(3)])
    assert [isinstance(reply, str) for reply in replies] == [True, False, True]
    assert str(replies[1]) == "the endpoint is down"


class Together:
    """Answers in batches only."""

    def __init__(self, replies: Any) -> None:
        self._replies = replies
        self.n_resets = 0

    def reset(self, seed: int) -> None:
        self.n_resets += 1

    def act(self, observation: Any, info: Any) -> str:
        raise AssertionError("asked one by one")

    def act_batch(self, observations: Any, infos: Any) -> Any:
        return self._replies


def test_an_agent_with_batches_is_asked_once_and_seeded_once(toys: ProblemSet) -> None:
    agent = Together(["x", AgentUnavailable("down")])
    asker = Asker(agent, "together")
    turns = [sample_turn(toys[0], "coder", k) for k in range(2)]
    assert [str(reply) for reply in asker.ask(turns)] == ["x", "down"]
    asker.ask(turns)
    assert agent.n_resets == 1


@pytest.mark.parametrize("replies", [["x"], "xy", None, ["x", 3]])
def test_a_batch_that_is_no_list_of_texts_is_the_agents_fault(toys: ProblemSet, replies: Any) -> None:
    with pytest.raises(UserError, match="together"):
        Asker(Together(replies), "together").ask([sample_turn(toys[0], "coder", k) for k in (0, 1)])


def test_what_an_agent_raises_names_the_place(toys: ProblemSet, scripted: Callable[..., Any]) -> None:
    _, asker = scripted(lambda observation, info: 1 / 0)
    with pytest.raises(UserError, match=r"toy/add, sample 0: ZeroDivisionError"):
        asker.ask([sample_turn(toys[0], "coder", 0)])


@pytest.mark.parametrize("raised", [asyncio.CancelledError, GeneratorExit, StopIteration, SystemExit])
def test_what_python_uses_for_its_own_ends_is_the_agents_fault_too(
    toys: ProblemSet, scripted: Callable[..., Any], raised: type[BaseException]
) -> None:
    def agent(observation: Any, info: Any) -> str:
        raise raised

    _, asker = scripted(agent)
    with pytest.raises(UserError, match=r"scripted .* in problem toy/add, sample 0"):
        asker.ask([sample_turn(toys[0], "coder", 0)])


def test_a_seed_may_come_from_elsewhere_and_an_agent_with_batches_keeps_its_own(
    toys: ProblemSet, scripted: Callable[..., Any]
) -> None:
    turns = [sample_turn(toys[0], "coder", k) for k in range(2)]
    agent, _ = scripted(lambda observation, info: "x")
    Asker(agent, "it", seed=None, seed_of=lambda turn: 10 + turn.info["sample"]).ask(turns)
    assert agent.seeds == [10, 11]
    together = Together(["x", "y"])
    assert Asker(together, "together", seed=None).ask(turns) == ["x", "y"]
    assert together.n_resets == 0
