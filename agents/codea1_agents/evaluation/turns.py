"""Makes turns outside of any game, each with its own info."""

from __future__ import annotations

from codea1_env.agent import Role
from codea1_env.observations import observation_of, turn_info
from codea1_env.problems.problem import Problem
from codea1_env.rounds.rounds import Turn


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
    """Return one turn outside of any round, as a round with `RoundOptions.sample_of` makes them.

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
    info = turn_info(
        problem,
        episode_id=f"{problem.id}/{sample}",
        role=role,
        round_=round_,
        tests_per_suite=tests,
        program=program,
        tester_view=view,
    )
    return Turn(observation_of(problem, round_, program, feedback), info | {"sample": sample})
