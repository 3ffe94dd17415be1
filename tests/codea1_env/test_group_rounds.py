"""Groups of several rounds: the same rounds as the two-agent game plays, who goes on, and many at once."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence

from codea1_env import GroupVector, MistakeBook, Tree, code_a1_v0
from codea1_env.errors import UserError
from tests.support import ROOT
from tests.support.toys import BROKEN, GONE, LOOKS_RIGHT, NAIVE, RIGHT, SHARP, WRONG, fenced

OTHER = fenced("def add(a, b):\n    return a - b - 1")


def repairing(candidate: int, round_: int) -> Any:
    """Return a program per candidate and round: one ends in each way, and the last is never right."""
    return (
        (RIGHT, RIGHT, RIGHT),
        (WRONG, LOOKS_RIGHT, RIGHT),
        (WRONG, WRONG, RIGHT),
        (BROKEN, WRONG, OTHER),
        (WRONG, GONE, RIGHT),
        (WRONG, OTHER, LOOKS_RIGHT),
    )[candidate][round_]


SUITES = (SHARP, NAIVE)


def actions(env: Any) -> dict[str, Any]:
    names = {agent: tuple(map(int, agent.split("_")[1:])) for agent in env.unwrapped.turns}
    return {
        agent: repairing(*place, env.unwrapped.tree.round) if agent.startswith("coder") else SUITES[place[1]]
        for agent, place in names.items()
    }


def test_candidates_are_repaired_until_they_are_right_unchanged_masked_or_out_of_rounds(group):
    env = group(n_candidates=6, max_cycles=3)
    observations, _ = env.reset(seed=1)
    playing, ends = [], {}
    while env.agents:
        if env.acting == "coder":
            playing.append(sorted(int(agent.split("_")[1]) for agent in env.turns))
        observations, rewards, terminations, truncations, _ = env.step(actions(env))
        ends |= {agent: len(playing) - 1 for agent in terminations if terminations[agent] or truncations[agent]}
        assert all(math.isnan(rewards[agent]) for agent in truncations if truncations[agent])
    assert playing == [[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5], [1, 3, 5]]
    assert [ends[f"coder_{n}"] for n in range(6)] == [0, 2, 1, 2, 1, 2]
    assert all(ends[f"tester_{n}_{m}"] == ends[f"coder_{n}"] for n in range(6) for m in range(2))
    assert observations["coder_1"]["round"] == 3
    assert observations["coder_1"] in env.observation_space("coder_1")


def test_a_coder_sees_its_program_and_what_failed_in_the_suite_that_the_seed_draws(group):
    seen = set()
    for seed in range(6):
        env = group(n_candidates=2, max_cycles=2)
        env.reset(seed=seed)
        env.step({"coder_0": LOOKS_RIGHT, "coder_1": BROKEN})
        observations, *_ = env.step({"tester_0_0": SHARP, "tester_0_1": "assert add(-3, 1) == -2"})
        drawn = env.tree.trajectories[0].suite
        failing = "add(-1, -2) should be -3; it gave 3" if drawn == 0 else "add(-3, 1) should be -2; it gave 2"
        assert observations["coder_0"]["feedback"] == f"1 of {2 if drawn == 0 else 1} tests failed.\n{failing}"
        assert observations["coder_0"]["program"] == "def add(a, b):\n    return abs(a + b)"
        assert observations["coder_1"]["feedback"].startswith("The program is invalid (syntax error).")
        observations, *_ = env.step({"coder_0": WRONG, "coder_1": WRONG})
        assert observations["tester_0_1"]["program"] == "def add(a, b):\n    return a - b"
        assert observations["tester_0_1"]["feedback"].startswith(f"{2 if drawn == 0 else 1} valid tests, 1 of them")
        assert observations["tester_1_0"]["feedback"] == "The previous program was invalid; no suite was requested."
        seen.add(drawn)
    assert seen == {0, 1}


def test_one_candidate_with_one_suite_is_the_two_agent_game(add):
    """Observations, rewards and the book of each round, while no candidate is over."""
    rules = {"rules": "fixed", "problems": add, "max_cycles": 3}
    game = code_a1_v0.env(**rules)
    env = code_a1_v0.group_env(**rules, n_candidates=1, n_suites=1)
    game.reset(seed=3)
    observations, _ = env.reset(seed=3)
    for round_ in range(3):
        program = (WRONG, OTHER, LOOKS_RIGHT)[round_]
        for agent, one, reply in (("coder_0", "coder_0", program), ("tester_0", "tester_0_0", SHARP)):
            assert data_equivalence(game.observe(agent), observations[one])
            game.step(reply)
            observations, rewards, *_ = env.step({one: reply})
        assert rewards == {"coder_0": game.rewards["coder_0"], "tester_0_0": game.rewards["tester_0"]}
        assert len(env.last_tree.tree.replayed) == len(game.unwrapped.last_round.report.candidates[0].replayed)
    assert not env.agents
    tests = [[entry.entry.to_valid_case().case for entry in each.book.entries()] for each in (env, game.unwrapped)]
    assert tests[0]
    assert tests[0] == tests[1]


def test_many_at_once_are_the_same_as_one_by_one(group):
    make = partial(group, n_candidates=6, max_cycles=3)
    vector = GroupVector([make() for _ in range(3)])
    vector.reset(seed=5)
    steps: list[list[Any]] = [[] for _ in range(3)]
    while vector.turns():
        vector.send([actions(env) if vector._turns_of(env) else {} for env in vector.envs])
        for place, step in enumerate(vector.recv()):
            steps[place] += [step] if step.observations else []
    for place in range(3):
        env = make()
        env.reset(seed=5 + place)
        for step in steps[place]:
            assert repr(env.step(actions(env))) == repr(tuple(step))  # a nan is not equal to itself
        assert not env.agents
        assert [judged.tree.round for judged in vector.rounds(place)] == [0, 1, 2]
    assert np.isnan(vector.coder_rewards(0, 2)).tolist() == [True, False, True, False, True, False]


def test_members_that_are_a_round_ahead_wait_for_the_others(group):
    """Where no program loads, nobody writes suites, so that member would be at the next round already."""
    vector = GroupVector([group(max_cycles=2), group(max_cycles=2)])
    vector.reset(seed=0)
    played = []
    replies = {("coder", 0): [BROKEN] * 2 + [WRONG] * 2, ("coder", 1): [WRONG, OTHER, RIGHT, OTHER]}
    round_ = 0
    while turns := vector.turns():
        role = vector.acting
        played.append((role, len(turns)))
        vector.send(vector.actions(replies.get((role, round_), [SHARP] * len(turns))))
        vector.recv()
        round_ += role == "tester"
    assert played == [("coder", 4), ("tester", 4), ("coder", 4), ("tester", 8)]
    assert vector.coder_rewards(0).tolist() == [0.0, 0.0]
    assert vector.coder_rewards(1, 1)[0] == 1.0


def test_the_book_is_the_callers_where_he_passes_the_tree(group, add):
    with MistakeBook(None) as book:
        env = group(max_cycles=2, book=book)
        tree = Tree(add[0], 2, 2, seed=(1,))
        env.reset(options={"tree": tree})
        while env.agents:
            env.step({agent: OTHER if agent.startswith("coder") else SHARP for agent in env.turns})
        assert env.last_tree.tree.round == 1
        assert not book.size()
        with pytest.raises(UserError, match="be of the first round"):
            env.reset(options={"tree": env.last_tree.tree})


def test_the_pages_environment_that_pays_otherwise_pays_each_round_once(add):
    """The class of docs/training.md: a later round has fewer coders, and its first step judges nothing."""
    page = (ROOT / "docs" / "training.md").read_text()
    source = page[page.index("class ShortPrograms") : page.index('register_env("short"')]
    names: dict[str, Any] = {"code_a1_v0": code_a1_v0}
    exec(source, names)
    plain, paying = (
        kind(add, n_candidates=6, n_suites=2, max_cycles=3) for kind in (code_a1_v0.group_env, names["ShortPrograms"])
    )
    for env in (plain, paying):
        env.reset(seed=1)
    while plain.agents:
        replies = {f"coder_{n}": repairing(n, plain.tree.round) for n in plain.tree.numbers}
        judged = plain.last_tree
        _, expected, *_ = plain.step(actions(plain))
        _, paid, *_ = paying.step(actions(paying))
        costs = replies if plain.last_tree is not judged else {}
        expected = {agent: reward - 0.0001 * len(str(costs.get(agent, ""))) for agent, reward in expected.items()}
        assert paid == pytest.approx(expected, nan_ok=True)
    assert not paying.agents


@pytest.mark.parametrize("shape", [{"suites_per": "problem"}, {"n_suites": 0, "rules": "golden"}, {"max_cycles": 0}])
def test_rounds_need_suites_of_their_own(group, shape):
    with pytest.raises(UserError, match="max_cycles"):
        group(**{"max_cycles": 2, **shape})
    with pytest.raises(UserError, match="round 1 of a tree needs 2 trajectories, got 0"):
        Tree(group().problems[0], 2, round=1)
