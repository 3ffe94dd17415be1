from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from codea1_agents.adapters.played_game import PlayedGame
from codea1_env.errors import UserError
from codea1_env.problems import ProblemSet
from tests.support.toys import ADD, BROKEN, LAST, LOOKS_RIGHT, RIGHT, SHARP

TOYS = ProblemSet("toys", (ADD, LAST))


def test_a_game_ends_with_both_rewards_but_without_the_testers_if_the_program_does_not_load():
    game = PlayedGame(TOYS)
    first = game.reset(problem_id="toy/add")
    assert (first.agent, first.done, first.rewards) == ("coder", False, {"coder": None, "tester": None})
    second = game.submit("coder", LOOKS_RIGHT)
    assert second.agent == "tester"
    assert "abs(a + b)" in second.messages[-1]["content"]
    last = game.submit("tester", SHARP)
    assert (last.done, last.rewards, last.verdict) == (True, {"coder": 0.5, "tester": 0.1875}, "passed")
    assert {role: sum(terms.values()) for role, terms in last.reward_parts.items()} == pytest.approx(last.rewards)
    game = PlayedGame(TOYS)
    game.reset(problem_id="toy/add")
    assert game.submit("coder", BROKEN).rewards == {"coder": 0.0, "tester": None}


def test_the_next_round_has_feedback_and_the_rewards_of_the_last():
    game = PlayedGame(TOYS, rounds=2)
    game.reset(problem_id="toy/add")
    game.submit("coder", LOOKS_RIGHT)
    between = game.submit("tester", SHARP)
    assert (between.agent, between.rewards["coder"], between.observation["round"]) == ("coder", 0.5, 1)
    assert "tests failed" in between.observation["feedback"]
    assert game.submit("coder", RIGHT).rewards == {"coder": None, "tester": None}


def test_states_are_json_whatever_a_reply_holds_and_the_same_for_the_same_seed():
    game = PlayedGame(TOYS, rounds=2)
    game.reset(problem_id="toy/add")
    after = game.submit("coder", "def add(a, b):\n    return a + b  # \ud800")
    assert after.observation["program"].endswith("# ?")
    assert json.dumps(asdict(after), ensure_ascii=False).encode()
    first, second = PlayedGame("starter"), PlayedGame("starter")
    states = [asdict(game.reset(seed=7)) for game in (first, second)]
    assert json.dumps(states[0]) == json.dumps(states[1])


def test_our_own_failure_is_masked(broken_sandbox_name):
    game = PlayedGame(TOYS, sandbox=broken_sandbox_name)
    game.reset()
    state = game.submit("coder", RIGHT)
    assert (state.done, state.masked, state.rewards) == (True, True, {"coder": None, "tester": None})
    assert state.masked_because


def test_a_reply_out_of_turn_is_refused():
    game = PlayedGame(TOYS)
    with pytest.raises(UserError, match="no game is running"):
        game.submit("coder", RIGHT)
    game.reset()
    with pytest.raises(UserError, match="it is the coder's turn"):
        game.submit("tester", SHARP)
