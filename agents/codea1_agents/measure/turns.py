"""Turns outside of any game, each with an info of its own."""

from __future__ import annotations

from collections.abc import Callable

from codea1_env.agent import Role
from codea1_env.observations import ObservationFields, turn_info
from codea1_env.problems.problem import Problem
from codea1_env.rounds.rounds import Label, Labels, Turn
from codea1_env.rounds.trees import Tree


def sample_turn(
    problem: Problem,
    role: Role,
    sample: int,
    *,
    round_: int = 0,
    program: str = "",
    feedback: str = "",
    tests: int = 8,
    view: str = "",
) -> Turn:
    """Return one turn outside of any round.

    Args:
        problem: what it is about.
        role: who is to reply.
        sample: number of the reply among those to the same observation, from 0; without it they would all be the same.
        round_: of the observation.
        program: that a tester sees.
        feedback: of the observation.
        tests: wanted of a tester.
        view: what a tester is told about the program (`codea1_agents.prompts.templates.View`); empty: what it sees.
    """
    label = _label(problem, role, sample, view)
    info = turn_info(
        problem, episode_id=label.episode_id, role=role, round_=round_, tests_per_suite=tests, program=program
    )
    return Turn(ObservationFields(problem, round_, program, feedback).to_dict(), {**info, **label.extra})


def sample_labels(sample: Callable[[int, int], int], view: str = "") -> Labels:
    """Return labels by which a round's turns are what `sample_turn` returns.

    Args:
        sample: from candidate and suite to the number of the sample.
        view: of testers.
    """

    def label(tree: Tree, role: Role, candidate: int, suite: int) -> Label:
        return _label(tree.problem, role, sample(candidate, suite), view if role == "tester" else "")

    return label


def _label(problem: Problem, role: Role, sample: int, view: str) -> Label:
    told = {"tester_view": view} if view else {}
    return Label(f"{problem.id}/{sample}", extra={"sample": sample} | told)
