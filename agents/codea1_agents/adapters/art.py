"""ART: one round as groups of trajectories, for trainers of `openpipe-art`.

Masked replies have no trajectory. A group of which fewer than two are left teaches nothing and is left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from math import isnan
from typing import Any, TypeAlias

from codea1_agents.adapters.messages import Wording
from codea1_agents.prompts import load_prompts
from codea1_env.agent import Role
from codea1_env.errors import extra_needed
from codea1_env.problems import Problem
from codea1_env.rounds.referee import Referee
from codea1_env.rounds.rounds import Tree, Turn

Ask: TypeAlias = Callable[[list[dict[str, str]]], Awaitable[Any]]
"""From chat messages to a choice of a chat completion (`openai`), with the log-probabilities that ART needs."""


async def groups(
    problem: Problem,
    referee: Referee,
    coder: Ask,
    tester: Ask,
    *,
    n_programs: int = 4,
    n_suites: int = 4,
    wording: Wording = "default",
) -> Mapping[Role, list[Any]]:
    """Play one problem and return the groups of trajectories of each role (`art.TrajectoryGroup`).

    Args:
        problem: to play.
        referee: judges.
        coder, tester: ask the two models.
        n_programs: N programs, which are one group of the coder.
        n_suites: M suites for each program that loads, which are one group of the tester.
        wording: which wording the prompts use.

    Returns:
        For the coder at most one group, for the tester at most N.

    Raises:
        MissingExtra: openpipe-art is not installed.
        SandboxError: the sandbox cannot be used at all.
    """
    prompts = load_prompts(wording)

    async def sampled(turns: Iterable[Turn], ask: Ask) -> list[tuple[list[dict[str, str]], Any]]:
        chats = [[each.to_dict() for each in prompts.messages(turn.observation, turn.info)] for turn in turns]
        return list(zip(chats, await asyncio.gather(*map(ask, chats)), strict=True))

    rounds = referee.open([Tree(problem, n_programs, n_suites)])
    written = await sampled(rounds.coder_turns(), coder)
    await asyncio.to_thread(rounds.submit_programs, [_text(choice) for _, choice in written])
    turns = rounds.tester_turns()
    suites = await sampled(turns, tester)
    await asyncio.to_thread(rounds.submit_suites, [_text(choice) for _, choice in suites])
    (judged,) = rounds.results()
    of_testers: dict[int, list[tuple[tuple[Any, Any], float]]] = {}
    for turn, reply in zip(turns, suites, strict=True):
        of_testers.setdefault(turn.candidate, []).append((reply, judged.tester_rewards[turn.candidate, turn.suite]))
    of_coder = list(zip(written, judged.coder_rewards, strict=True))
    return {"coder": _grouped([of_coder], problem), "tester": _grouped(of_testers.values(), problem)}


def _text(choice: Any) -> str:
    return choice.message.content or ""


def _grouped(rewarded: Iterable[list[tuple[tuple[Any, Any], float]]], problem: Problem) -> list[Any]:
    """Return a group for each list of replies of which at least two are not masked."""
    with extra_needed("trajectories of ART", "art"):
        import art  # noqa: PLC0415
    found = []
    for group in rewarded:
        kept = [
            art.Trajectory(
                messages_and_choices=[*chat, choice], reward=float(reward), metadata={"problem_id": problem.id}
            )
            for (chat, choice), reward in group
            if not isnan(reward)
        ]
        if len(kept) > 1:
            found.append(art.TrajectoryGroup(kept))
    return found
