"""Many groups in one round: the same as one by one, in fewer calls of the sandbox, while agents go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from pettingzoo.utils import BaseParallelWrapper

from codea1_env import GroupVector, MistakeBook, Tree, code_a1_v0
from codea1_env.errors import SandboxError, UserError
from tests.support.toys import BROKEN, GONE, LOOKS_RIGHT, NAIVE, RIGHT, RULES, SHARP

PROGRAMS, SUITES = (LOOKS_RIGHT, RIGHT, BROKEN), (SHARP, NAIVE, SHARP, "no test")


def some(replies: Sequence[Any], n: int, first: int = 0) -> list[Any]:
    return [replies[(first + position) % len(replies)] for position in range(n)]


def episode(vector: GroupVector, programs: Sequence[Any] = PROGRAMS, suites: Sequence[Any] = SUITES) -> list[Any]:
    """Play an episode after a reset; return all steps."""
    steps = []
    for replies in (programs, suites):
        vector.send(vector.actions(some(replies, len(vector.turns()))))
        steps.append(vector.recv())
    return steps


@pytest.mark.parametrize("suites_per", ["candidate", "problem"])
def test_many_at_once_are_the_same_as_one_by_one(group, suites_per):
    make = partial(group, suites_per=suites_per)
    vector = GroupVector([make() for _ in range(3)])
    begun = vector.reset(seed=5)
    together = episode(vector)
    used = [0, 0]
    for place in range(3):
        env = make()
        assert data_equivalence(env.reset(seed=5 + place), (begun[place].observations, begun[place].infos))
        for phase, replies in enumerate((PROGRAMS, SUITES)):
            n = len(env.turns)
            step = env.step(dict(zip(env.turns, some(replies, n, used[phase]), strict=True)))
            used[phase] += n
            assert data_equivalence(step, tuple(together[phase][place]))
        assert env.last_tree.report == vector.trees()[place].report
        assert np.array_equal(env.last_tree.coder_rewards, vector.coder_rewards(place))
        assert np.array_equal(env.last_tree.tester_rewards, vector.tester_rewards(place), equal_nan=True)
    assert {len(each) for each in together[0]} == {5}


def test_all_share_the_calls_of_the_sandbox(group, watched):
    GroupVector([group(sandbox=watched)]).reset()
    counts = []
    for n in (1, 4):
        vector = GroupVector([group(sandbox=watched) for _ in range(n)])
        vector.reset(seed=0)
        before = len(watched.batches)
        episode(vector)
        counts.append(len(watched.batches) - before)
        assert vector.judge_s > 0
    assert counts[0] == counts[1]


def test_send_never_waits_so_that_vectors_of_one_referee_overlap(group, watched):
    envs = [group(sandbox=watched) for _ in range(4)]
    vectors = [GroupVector(envs[:2]), GroupVector(envs[2:], envs[0].referee)]
    watched.gate.clear()
    for vector in vectors:
        vector.reset(seed=0)
        vector.send(vector.actions([RIGHT] * 4))
    assert not watched.threads
    watched.gate.set()
    for vector in vectors:
        vector.recv()
        vector.send(vector.actions([NAIVE] * 8))
    for vector in vectors:
        vector.recv()
        assert vector.coder_rewards(1).tolist() == [1.0, 1.0]
    assert len(watched.threads) == 1
    envs[0].referee.close()


def test_turns_say_whose_they_are_and_show_what_the_environment_shows(group, toys):
    class Hinting(code_a1_v0.group_env):
        def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> Any:
            observations, infos = super().reset(seed, options)
            return {agent: {**seen, "feedback": "hint"} for agent, seen in observations.items()}, infos

    vector = GroupVector([Hinting(toys, rules=RULES, n_candidates=2, n_suites=1) for _ in range(3)])
    trees = [Tree(problem, 2, 1, name=f"t{n}", seed=(9, n)) for n, problem in enumerate(toys)]
    vector.reset(options=[{"tree": tree} for tree in trees])
    turns = vector.turns()
    expected = [(t, n, (9, t, 0, n, 0)) for t in range(2) for n in range(2)]
    assert [(turn.tree, turn.candidate, turn.seed) for turn in turns] == expected
    assert {turn.observation["feedback"] for turn in turns} == {"hint"}
    vector.send(vector.actions([RIGHT, BROKEN, "def last(items): return items[-1]", GONE]))
    vector.recv()
    assert [(turn.tree, turn.candidate, turn.info["active"]) for turn in vector.turns()] == [(0, 0, True), (1, 0, True)]
    vector.send([{"tester_0_0": NAIVE}, {"tester_0_0": GONE}])
    agents = ("coder_0", "coder_1", "tester_0_0")
    assert [step.truncations for step in vector.recv()] == [dict.fromkeys(agents, cut) for cut in (False, True)]
    assert [judged.tree for judged in vector.trees()] == trees
    assert vector.turns() == []
    assert vector.tester_rewards(0).tolist()[0] == [0.5]
    assert np.isnan(vector.tester_rewards(0)[1]).all()
    assert np.isnan(vector.tester_rewards(1)).all()
    assert np.isnan(vector.coder_rewards(1)).all()


def paid(step: Any) -> Any:
    """Return what a step returned, with another reward for one agent."""
    observations, rewards, *rest = step
    return observations, {agent: 10 + each if agent == "coder_1" else each for agent, each in rewards.items()}, *rest


class Wrapped(BaseParallelWrapper[str, Any, Any]):
    """Pays one agent something else."""

    def step(self, actions: Mapping[str, Any]) -> Any:
        return paid(super().step(actions))


class Derived(code_a1_v0.group_env):
    """The same by derivation."""

    def step(self, actions: Mapping[str, Any]) -> Any:
        return paid(super().step(actions))


@pytest.mark.parametrize("is_derived", [False, True])
def test_what_one_environment_pays_otherwise_is_paid_and_nothing_else(group, toys, is_derived):
    other = Derived(toys, rules=RULES, n_candidates=2, n_suites=2) if is_derived else Wrapped(group())
    vector, plain = GroupVector([group(), other]), GroupVector([group(), group()])
    for each in (vector, plain):
        each.reset(options=[{"problem_id": "toy/add"}] * 2)
        episode(each)
    assert (vector.coder_rewards(1) - plain.coder_rewards(1)).tolist() == [0.0, 20.0]  # of two steps
    for place in range(2):
        assert np.array_equal(vector.tester_rewards(place), plain.tester_rewards(place), equal_nan=True)
    assert np.array_equal(vector.coder_rewards(0), plain.coder_rewards(0))


def test_a_wrapper_that_changes_actions_comes_too_late(group):
    class Changing(BaseParallelWrapper[str, Any, Any]):
        def step(self, actions: Mapping[str, Any]) -> Any:
            return super().step(dict.fromkeys(actions, ""))

    vector = GroupVector([Changing(group())])
    vector.reset()
    vector.send(vector.actions([RIGHT, RIGHT]))
    with pytest.raises(RuntimeError, match="changed after they had been sent"):
        vector.recv()


def test_fewer_may_play_and_vectors_are_used_again(group):
    vector = GroupVector([group() for _ in range(3)])
    assert len(vector.reset(options=[{}, {}])) == 2
    episode(vector)
    assert len(vector.trees()) == 2
    assert len(vector.reset(seed=0)) == 3
    with pytest.raises(UserError, match="still running"):
        vector.trees()
    assert len(episode(vector)[1]) == 3
    vector.close()


def test_without_testers_one_step_is_all(group, watched):
    vector = GroupVector([group(sandbox=watched, n_suites=0, rules="golden") for _ in range(2)])
    vector.reset()
    vector.send(vector.actions([RIGHT, LOOKS_RIGHT] * 2))
    vector.recv()
    assert vector.coder_rewards(1).tolist() == [1.0, 1.0]
    assert vector.tester_rewards(1).shape == (2, 0)
    assert vector.trees()[0].report.candidates[0].golden_pass_rate == 1.0


def test_a_book_may_be_shared(group):
    with MistakeBook() as book:
        vector = GroupVector([group(book=book) for _ in range(2)])
        vector.reset()
        episode(vector, [LOOKS_RIGHT], [SHARP])
        assert book.round_of("toy/add") == 2
        vector.reset()
        episode(vector)
        assert [len(judged.tree.replayed) for judged in vector.trees()] == [1, 1]


def test_a_sandbox_that_cannot_be_used_at_all_stops_all_before_any_has_stepped(group, watched):
    watched.error = "no processes left"
    vector = GroupVector([group(sandbox=watched) for _ in range(2)])
    vector.reset()
    vector.send(vector.actions([RIGHT] * 4))
    with pytest.raises(SandboxError, match="no processes"):
        vector.recv()
    assert len(vector.turns()) == 4
    with pytest.raises(UserError, match="send must be called after"):
        vector.send(vector.actions([RIGHT] * 4))
    watched.error = ""
    vector.reset()
    assert len(episode(vector)[1]) == 2


def test_after_a_failed_reset_nobody_plays(group):
    vector = GroupVector([group(), group()])
    vector.reset(seed=0)
    lost = {"problem_id": "toy/lost"}
    for wrong in ({"options": [{}, lost]}, {"options": [{}, 5]}, {"options": 5}, {"seed": "x"}, {"seed": -1}):
        with pytest.raises(UserError, match=r"toy/lost|must be a"):
            vector.reset(**wrong)
        assert vector.turns() == []
        with pytest.raises(UserError, match="send must be called after"):
            vector.send([])
        with pytest.raises(UserError, match="place must be"):
            vector.coder_rewards(0)
    vector.reset(seed=0)
    assert len(episode(vector)[1]) == 2


def test_an_episode_without_a_program_that_loads_is_over_before_the_others(group):
    vector = GroupVector([group(), group()])
    vector.reset(seed=0)
    vector.send(vector.actions([BROKEN, "no code", RIGHT, LOOKS_RIGHT]))
    first, other = vector.recv()
    assert list(first.terminations.values()) == [True] * 6
    assert not any(other.terminations.values())
    assert {turn.tree for turn in vector.turns()} == {1}
    vector.send(vector.actions([NAIVE] * 4))
    assert vector.recv()[0] == ({}, {}, {}, {}, {})
    assert [len(judged.suites[0]) for judged in vector.trees()] == [0, 2]
    assert vector.coder_rewards(0).tolist() == [0.0, 0.0]
    vector.reset(seed=0)
    vector.send(vector.actions([BROKEN] * 4))
    vector.recv()
    assert vector.turns() == []
    with pytest.raises(UserError, match="while the episode is running"):
        vector.send([{}, {}])


def test_misuse_is_named(group, toys):
    with pytest.raises(UserError, match="at least one"):
        GroupVector([])
    with pytest.raises(UserError, match="needs environments made by"):
        GroupVector([code_a1_v0.parallel_env(problems=toys)])
    for other in ({"rules": "paper"}, {"skip_invalid": False}, {"tester_view": "black_box"}):
        with pytest.raises(UserError, match="must have the same"):
            GroupVector([group(), group(**other)])
    vector = GroupVector([group()])
    with pytest.raises(UserError, match="send must be called after"):
        vector.send([{}])
    with pytest.raises(UserError, match="recv must be called after"):
        vector.recv()
    with pytest.raises(UserError, match="expected options for 1 environments, got 2"):
        vector.reset(options=[{}, {}])
    vector.reset()
    with pytest.raises(UserError, match="2 turns and 1 replies"):
        vector.actions([RIGHT])
    for wrong, said in (([], "1 environments and 0 actions"), (5, "actions must be a list"), ([[]], "takes a dict")):
        with pytest.raises(UserError, match=said):
            vector.send(wrong)
    with pytest.raises(UserError, match="action of coder_1"):
        vector.send([{"coder_0": "early"}])
    vector.send(vector.actions([RIGHT, RIGHT]))
    with pytest.raises(UserError, match="send must be called after"):
        vector.send([{}])
