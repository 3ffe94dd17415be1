"""Asking an agent many things at once, outside of any game: each turn with infos and seeds of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TypeAlias

from codea1_agents.seats import Seat
from codea1_env.agent import Agent, Info, Role
from codea1_env.errors import AgentUnavailable
from codea1_env.observations import Seen, turn_info
from codea1_env.problems.problem import Problem
from codea1_env.rounds import Label, Labels, Turn
from codea1_env.trees import Tree

__all__ = ["Asker", "Reply", "sample_labels", "sample_turn"]

Reply: TypeAlias = str | AgentUnavailable
"""A text, or why there is none."""

_SEED_BITS = 53
"""A double holds them, so that any reader of a record keeps a seed exact."""


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
    return Turn(Seen(problem, round_, program, feedback).to_dict(), {**info, **label.extra})


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


class Asker:
    """One agent with its name and the seed of the run.

    An agent with `act_batch` is seeded once and gets all turns of a call together; its draws may depend on seed,
    observation and info only (docs/agents.md). Any other agent is seeded anew before every turn. Either way a reply
    does not depend on which turns were asked before, so that an interrupted evaluation can go on.
    """

    def __init__(self, agent: Agent, name: str, *, seed: int = 0) -> None:
        self._seat = Seat(name, agent)
        self._seed = seed
        self._is_seeded = False

    def ask(self, turns: Sequence[Turn]) -> list[Reply]:
        """Return one reply per turn, in order; their infos hold `sample`.

        Raises:
            UserError: the agent failed, or returned something that is no text.
        """
        if self._seat.takes_batches and turns:
            return self._ask_together(turns)
        return [self._ask_one(turn) for turn in turns]

    def close(self) -> None:
        """Let the agent go."""
        self._seat.close()

    def _ask_together(self, turns: Sequence[Turn]) -> list[Reply]:
        where = f"a batch of {len(turns)}"
        if not self._is_seeded:
            self._seat.reset(self._seed, where)
            self._is_seeded = True
        try:
            found = self._seat.act_batch([turn.observation for turn in turns], [turn.info for turn in turns], where)
        except AgentUnavailable as error:
            return [error] * len(turns)
        return [each if isinstance(each, AgentUnavailable) else self._seat.text(each, where) for each in found]

    def _ask_one(self, turn: Turn) -> Reply:
        where = f"problem {turn.info['problem_id']}, sample {turn.info['sample']}"
        self._seat.reset(_seed_of(turn.info, self._seed), where)
        try:
            return self._seat.act(turn.observation, turn.info, where)
        except AgentUnavailable as error:
            return error


def _seed_of(info: Info, run_seed: int) -> int:
    """Return a seed of a turn's own, for agents that draw one reply after the other."""
    key = f"{run_seed}/{info['role']}/{info['problem_id']}/{info['sample']}/{info['round']}"
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - _SEED_BITS)
