from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from codea1_agents.play.named_agent import NamedAgent
from codea1_env.agent import Info, Observation
from codea1_env.errors import AgentUnavailable
from codea1_env.problems import ProblemSet
from codea1_env.sandbox import Sandbox
from codea1_lab.crossplay.cells import CrossPlay, Submissions
from codea1_lab.crossplay.running import Player, play_all
from tests.support.scripted import Scripted
from tests.support.toys import ADD, LAST, RULES, fenced

RIGHT = {problem.id: problem.solution for problem in (ADD, LAST)}
WRONG = {"toy/add": "def add(a, b):\n    return a - b\n", "toy/last": "def last(items):\n    return items[-1]\n"}
HARD = {"toy/add": "assert add(1, 1) == 2", "toy/last": "assert last([]) is None"}
EASY = {"toy/add": "assert add(1, 0) == 1", "toy/last": "assert last([1]) == 1"}


def player(name: str, replies: Any, **options: Any) -> tuple[Scripted, Player]:
    reply = replies if callable(replies) else lambda observation, info: replies[info["problem_id"]]
    agent = Scripted(lambda *turn: (text := reply(*turn)) and fenced(text))
    return agent, Player(name, NamedAgent(agent, name), **options)


def attacking(observation: Observation, info: Info) -> str:
    """Be hard on wrong programs only, so that what is written for one coder differs from what is for another."""
    is_wrong = observation["program"].strip() == WRONG[info["problem_id"]].strip()
    return (HARD if is_wrong else EASY)[info["problem_id"]]


def played(
    toys: ProblemSet, sandbox: Sandbox, coders: list[Player], testers: list[Player], **options: Any
) -> tuple[CrossPlay, Submissions]:
    return play_all(list(toys), coders, testers, sandbox, RULES, **{"samples": 2, **options})


def test_one_coder_has_no_others_and_a_black_box_tester_sees_no_program(toys: ProblemSet, sandbox: Sandbox) -> None:
    told: list[tuple[int, int]] = []
    tester, hard = player("hard", HARD, view="black_box")
    coder = player("wrong", WRONG)[1]
    play, _ = played(toys, sandbox, [coder], [hard], progress=lambda done, all_: told.append((done, all_)))
    assert play.transfer is None
    assert told == [(2, 2)]
    assert {(o["program"], i["tester_view"]) for o, i in tester.asked} == {("", "black_box")}


def test_on_policy_suites_meet_their_programs_and_transfer_those_of_others(toys: ProblemSet, sandbox: Sandbox) -> None:
    _, right = player("right", RIGHT)
    _, wrong = player("wrong", WRONG)
    tester, attacker = player("attacker", attacking)
    play, submissions = played(toys, sandbox, [right, wrong], [attacker])
    assert play.on_policy.beats[:, 0].tolist() == [[0.0, 0.0], [1.0, 1.0]]
    assert play.transfer.beats[:, 0].tolist() == [[0.0, 0.0], [0.0, 0.0]]  # the wrong one meets the easy suites
    assert play.right.tolist() == [[1.0, 1.0], [0.0, 0.0]]
    assert play.on_policy.caught[1, 0].tolist() == [1.0, 1.0]
    assert np.isnan(play.on_policy.caught[0]).all()
    assert len(tester.asked) == 2 * 2 * 2  # nobody is asked for transfer
    assert len(submissions.programs) == 8
    assert len(submissions.suites) == 8
    assert {each.coder for each in submissions.suites} == {"right", "wrong"}


def test_nobody_answers_a_program_that_does_not_load(toys: ProblemSet, sandbox: Sandbox) -> None:
    _, half = player("half", lambda _, info: WRONG[info["problem_id"]] if info["sample"] else "def broken(:")
    tester, hard = player("hard", HARD)
    play, _ = played(toys, sandbox, [half], [hard])
    assert len(tester.asked) == 2
    assert play.on_policy.survives.tolist() == [[[0.0, 0.0]]]
    assert play.on_policy.beats.tolist() == [[[1.0, 1.0]]]
    assert play.on_policy.n_masked == 0


def test_what_an_agent_does_not_answer_is_masked_and_never_a_zero(toys: ProblemSet, sandbox: Sandbox) -> None:
    _, first = player("c", lambda _, info: None if info["sample"] else RIGHT[info["problem_id"]])
    _, not_add = player("t", lambda _, info: None if info["problem_id"] == "toy/add" else HARD[info["problem_id"]])
    play, _ = played(toys, sandbox, [first], [not_add])
    assert np.isnan(play.on_policy.survives[0, 0, 0])
    assert play.on_policy.survives[0, 0, 1] == 1.0
    assert play.on_policy.n_masked == 3
    with pytest.raises(AgentUnavailable, match="silent: the endpoint"):
        played(toys, sandbox, [player("silent", lambda observation, info: None)[1]], [player("t", HARD)[1]])


def test_a_pair_on_policy_does_not_depend_on_who_else_takes_part(toys: ProblemSet, sandbox: Sandbox) -> None:
    wrong, attacker = player("wrong", WRONG)[1], player("a", attacking)[1]
    few, _ = played(toys, sandbox, [wrong], [attacker])
    others = player("right", RIGHT)[1], player("hard", HARD, is_fixed=True)[1]
    many, _ = played(toys, sandbox, [others[0], wrong], [others[1], attacker])
    for name in ("pass_rate", "beats", "coder_reward", "tester_reward"):
        assert getattr(few.on_policy, name)[0, 0].tolist() == getattr(many.on_policy, name)[1, 1].tolist()
    assert (many.fixed_coders, many.fixed_testers) == ((), (0,))
