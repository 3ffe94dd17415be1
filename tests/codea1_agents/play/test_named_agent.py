from __future__ import annotations

import asyncio
from typing import Any

import pytest

from codea1_agents.evaluation.turns import sample_turn
from codea1_agents.play.named_agent import NamedAgent
from codea1_env.agent import EndedReply
from codea1_env.errors import AgentUnavailable, UserError
from codea1_env.problems.problem import ProblemSet
from tests.support.scripted import Streaming, scripted


def test_every_turn_has_an_info_and_a_seed_of_its_own_whatever_was_asked_before(toys: ProblemSet) -> None:
    agent, named = scripted(lambda observation, info: "x")
    named.replies([sample_turn(problem, "coder", k) for problem in toys for k in range(3)])
    assert len(set(agent.seeds)) == 6
    assert len({(info["problem_id"], info["sample"], info["episode_id"]) for _, info in agent.asked}) == 6
    turns = [sample_turn(toys[0], "coder", k) for k in range(3)]
    whole, named = scripted(lambda observation, info: "x")
    named.replies(turns)
    later, other = scripted(lambda observation, info: "x")
    other.replies(turns[2:])
    assert later.seeds == whole.seeds[2:]


def test_one_unavailable_reply_leaves_the_others(toys: ProblemSet) -> None:
    _, named = scripted(lambda observation, info: None if info["sample"] == 1 else "x")
    replies = named.replies([sample_turn(toys[0], "coder", k) for k in range(3)])
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


def test_an_agent_with_batches_is_asked_and_seeded_once_and_a_seed_may_come_from_elsewhere(toys: ProblemSet) -> None:
    agent = Together(["x", AgentUnavailable("down")])
    named = NamedAgent(agent, "together")
    turns = [sample_turn(toys[0], "coder", k) for k in range(2)]
    assert [str(reply) for reply in named.replies(turns)] == ["x", "down"]
    named.replies(turns)
    assert agent.n_resets == 1
    turns = [sample_turn(toys[0], "coder", k) for k in range(2)]
    agent, _ = scripted(lambda observation, info: "x")
    NamedAgent(agent, "it", seed=None, seed_of=lambda turn: 10 + turn.info["sample"]).replies(turns)
    assert agent.seeds == [10, 11]
    together = Together(["x", "y"])
    assert NamedAgent(together, "together", seed=None).replies(turns) == ["x", "y"]
    assert together.n_resets == 0


@pytest.mark.parametrize("replies", [["x"], "xy", None, ["x", 3]])
def test_a_batch_that_is_no_list_of_texts_is_the_agents_fault(toys: ProblemSet, replies: Any) -> None:
    with pytest.raises(UserError, match="together"):
        NamedAgent(Together(replies), "together").replies([sample_turn(toys[0], "coder", k) for k in (0, 1)])


def test_a_stream_gives_the_replies_as_they_end_whatever_the_agent_has(toys: ProblemSet) -> None:
    turns = [sample_turn(toys[0], "coder", k) for k in range(3)]
    for agent, n_at_once, sizes in (
        (Streaming(lambda position: f"reply {position}"), 2, [1, 1, 1]),
        (Together(["reply 0", "reply 1"]), 2, [2]),
        (scripted(lambda observation, info: f"reply {info['sample']}")[0], 2, [2, 1]),
    ):
        wanted = turns[: sum(sizes)]
        lists = list(NamedAgent(agent, "it").stream(wanted, n_at_once))
        assert [len(each) for each in lists] == sizes
        replied = sorted((each for some in lists for each in some), key=lambda each: turns.index(each.turn))
        assert [each.reply for each in replied] == [f"reply {n}" for n in range(len(wanted))]
    missing = NamedAgent(Streaming(lambda position: AgentUnavailable("down")), "it")
    assert len(list(missing.stream(turns, 2))) == 3
    assert missing.why_missing == "down"


@pytest.mark.parametrize(
    "yielded",
    [[], [EndedReply(0, "x")], [EndedReply(1, "x")] * 2, [EndedReply(7, "x")], ["x", "y"], [EndedReply(0, 3)]],
)
def test_a_stream_without_one_text_per_turn_is_the_agents_fault(toys: ProblemSet, yielded: Any) -> None:
    agent = Streaming(str)
    agent.act_stream = lambda observations, infos: iter(yielded)  # type: ignore[method-assign]
    with pytest.raises(UserError, match=r"^streaming (yielded|returned) .*expected"):
        list(NamedAgent(agent, "streaming").stream([sample_turn(toys[0], "coder", k) for k in (0, 1)], 2))


@pytest.mark.parametrize("raised", [asyncio.CancelledError, GeneratorExit, StopIteration, SystemExit])
def test_what_python_raises_for_its_own_ends_is_the_agents_fault(toys: ProblemSet, raised: type[BaseException]) -> None:
    def agent(observation: Any, info: Any) -> str:
        raise raised

    _, named = scripted(agent)
    with pytest.raises(UserError, match=r"scripted .* in problem toy/add, sample 0"):
        named.replies([sample_turn(toys[0], "coder", 0)])


def test_an_error_without_a_line_of_the_agents_names_no_line(toys: ProblemSet) -> None:
    class TakesNothing:
        def act(self) -> str:
            raise AssertionError

    with pytest.raises(UserError, match=r"bad failed in problem toy/add, sample 0: TypeError: .*given$"):
        NamedAgent(TakesNothing(), "bad").replies([sample_turn(toys[0], "coder", 0)])  # type: ignore[arg-type]
