"""What the games of one coder and one tester, `code_a1_v0` and `bank_v0`, have in common."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pettingzoo import AECEnv
from pettingzoo.utils.conversions import turn_based_aec_to_parallel_wrapper

from codea1_env.errors import UserError, one_of, whole_number
from codea1_env.judging.judged_round import JudgedRound
from codea1_env.problems.problem import Problem
from codea1_env.rules.reward_parts import CandidateRewards

CODER = "coder_0"
TESTER = "tester_0"
MAX_CYCLES = 1_000_000
"""Most rounds of an episode."""
METADATA: Mapping[str, Any] = {"render_modes": ["human", "ansi"], "render_fps": 1, "is_parallelizable": False}
"""Of both games, as PettingZoo declares it."""
VIEWS = ("white_box", "black_box")

_log = logging.getLogger(__name__)

_Game = TypeVar("_Game", bound="AECEnv[str, Any, Any]")


def simultaneous(make: Callable[..., _Game], given: dict[str, Any], forced: Mapping[str, Any]) -> _Game:
    """Return a game in which both agents act at once, for `aec_to_parallel`.

    Args:
        make: the game's class.
        given: the arguments of the caller.
        forced: the arguments that can have only one value in such a game.

    Raises:
        UserError: an argument has another value than the forced one.
    """
    for name, value in forced.items():
        if given.setdefault(name, value) != value:
            raise UserError(f"blind_parallel_env: {name} can only be {value!r}, since both agents act at once")
    game = make(**given)
    game.metadata = {**game.metadata, "is_parallelizable": True}
    return game


class TurnBasedParallelEnv(turn_based_aec_to_parallel_wrapper):  # type: ignore[misc]  # PettingZoo is untyped
    """A game of two agents as a parallel environment whose step takes one action; infos say whose, from `reset` on."""

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Start an episode; the arguments are the game's."""
        observations, infos = super().reset(seed=seed, options=options)
        return observations, self._with_turn(infos)

    def step(self, actions: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        """Take the action of the agent whose turn it is."""
        *found, infos = super().step(actions)
        return *found, self._with_turn(infos)

    def _with_turn(self, infos: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        if not self.unwrapped.has_infos:
            return {agent: {} for agent in infos}
        return {agent: info | {"active_agent": self.aec_env.agent_selection} for agent, info in infos.items()}


def role_of(agent: str) -> str:
    """Return `coder` or `tester`."""
    return agent.partition("_")[0]


def set_up(
    env: AECEnv[str, Any, Any], *, tester_view: str, max_cycles: int, render_mode: str | None, infos: bool
) -> None:
    """Set what every game of two agents has before its first episode.

    Raises:
        UserError: an argument has an invalid value.
    """
    env.tester_view = one_of("tester_view", tester_view, VIEWS)
    env.render_mode = None if render_mode is None else one_of("render_mode", render_mode, METADATA["render_modes"])
    env.max_cycles = whole_number("max_cycles", max_cycles, most=MAX_CYCLES)
    env.has_infos = infos
    env.possible_agents = [CODER, TESTER]
    env.agents = []
    env.last_round = None


def begin_episode(env: AECEnv[str, Any, Any]) -> None:
    """Let both agents live, without rewards and infos."""
    env.agents = env.possible_agents[:]
    env.rewards = dict.fromkeys(env.agents, 0.0)
    env._cumulative_rewards = dict.fromkeys(env.agents, 0.0)
    env.terminations = dict.fromkeys(env.agents, False)
    env.truncations = dict.fromkeys(env.agents, False)
    env.infos = {agent: {} for agent in env.agents}


def pay(env: AECEnv[str, Any, Any], rewards: CandidateRewards, *, is_last: bool) -> bool:
    """Give both agents their rewards, and end the episode after its last round or if they are masked.

    Returns:
        Whether the episode is over.
    """
    masked = rewards.coder.masked
    env.rewards = {CODER: rewards.coder.value, TESTER: rewards.testers[0].value}
    env.terminations = dict.fromkeys(env.agents, is_last and not masked)
    env.truncations = dict.fromkeys(env.agents, masked)
    return is_last or masked


def render(judged: JudgedRound | None, problem: Problem, mode: str | None) -> str | None:
    """Print (`human`) or return (`ansi`) the last judged round of a game in this render mode."""
    if mode is None:
        _log.warning("render() without a render_mode; use env(render_mode='ansi')")
        return None
    from codea1_env.rendering import rendered  # noqa: PLC0415  rich is slow to import

    return rendered(judged, problem, mode)
