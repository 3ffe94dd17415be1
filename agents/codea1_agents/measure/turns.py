"""Makes turns outside of any game, each with its own info."""

from __future__ import annotations

from collections.abc import Callable

from codea1_env.agent import Role
from codea1_env.observations import ObservationFields, turn_info
from codea1_env.problems.problem import Problem
from codea1_env.rounds.rounds import Label, Labels, Turn


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
        problem: the problem.
        role: role of the agent that replies.
        sample: number of the reply among those to the same observation, from 0; it makes the replies differ.
        round_: number of the round in the observation, from 0.
        program: the program in the observation.
        feedback: the feedback in the observation.
        tests: number of tests that a tester is to write.
        view: what a tester's prompt says about the program (`codea1_agents.prompts.templates.View`); empty: follows
            from the observation.
    """
    label = _label(problem, sample)
    info = turn_info(
        problem,
        episode_id=label.episode_id,
        role=role,
        round_=round_,
        tests_per_suite=tests,
        program=program,
        tester_view=view,
    )
    return Turn(ObservationFields(problem, round_, program, feedback).to_dict(), {**info, **label.extra})


def sample_labels(sample: Callable[[int, int], int]) -> Labels:
    """Return labels with which a round's turns equal those of `sample_turn`.

    Args:
        sample: maps the numbers of candidate and suite to the number of the sample.
    """
    return lambda tree, _, candidate, suite: _label(tree.problem, sample(candidate, suite))


def _label(problem: Problem, sample: int) -> Label:
    return Label(f"{problem.id}/{sample}", extra={"sample": sample})
