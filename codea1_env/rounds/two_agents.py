"""The common part of the PettingZoo environments with one coder and one tester: turns, spaces, infos and rendering."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from gymnasium import spaces
from pettingzoo import AECEnv
from pettingzoo.utils.conversions import turn_based_aec_to_parallel_wrapper

from codea1_env.errors import UserError, one_of, whole_number
from codea1_env.judging.judged_round import JudgedRound
from codea1_env.observations import judged_info, turn_info
from codea1_env.problems import Problem
from codea1_env.rules.ruleset import Ruleset

CODER = "coder_0"
TESTER = "tester_0"
MAX_CYCLES = 1_000_000
"""Most rounds of an episode."""

_log = logging.getLogger(__name__)


_Game = TypeVar("_Game", bound="TwoAgentEnv")


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


class TwoAgentEnv(AECEnv[str, Any, Any]):  # type: ignore[misc]  # PettingZoo is untyped
    """A game in which the coder acts first, then the tester; both get their rewards after the tester has acted.

    A game sets `rules`, both dicts of spaces, and in `reset` the problem and the episode's id.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  PettingZoo declares it so
        "render_modes": ["human", "ansi"],
        "render_fps": 1,
        "is_parallelizable": False,
    }
    rules: Ruleset
    _observation_spaces: dict[str, spaces.Space[Any]]
    _action_spaces: dict[str, Any]
    _problem: Problem
    _episode_id: str

    def __init__(self, *, tester_view: str, max_cycles: int, render_mode: str | None, infos: bool) -> None:
        """Check the arguments that all games have.

        Raises:
            UserError: an argument has an invalid value.
        """
        super().__init__()
        self.tester_view = one_of("tester_view", tester_view, ("white_box", "black_box"))
        self.has_infos = infos
        self.reported_view = self.tester_view  # its name in the tester's infos
        modes = self.metadata["render_modes"]
        self.render_mode = None if render_mode is None else one_of("render_mode", render_mode, modes)
        self.max_cycles = whole_number("max_cycles", max_cycles, most=MAX_CYCLES)
        self.possible_agents = [CODER, TESTER]
        self.agents: list[str] = []
        self.last_round: JudgedRound | None = None

    def __str__(self) -> str:
        return str(self.metadata["name"])

    # -- the PettingZoo interface --

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the agent's space, always the same object."""
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the agent's space, always the same object."""
        space: spaces.Space[Any] = self._action_spaces[agent]
        return space

    def step(self, action: Any) -> None:
        """Take the action of `agent_selection`; None only for an agent that is done.

        Raises:
            UserError: it is not a legal action.
        """
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        accepted = self._checked_action(agent, action)
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        self._act(agent, accepted)
        self._accumulate_rewards()
        if self.render_mode == "human":
            self.render()

    def render(self) -> str | None:
        """Render the last judged round; prints (`human`) or returns (`ansi`) it."""
        if self.render_mode is None:
            _log.warning("render() without a render_mode; use env(render_mode='ansi')")
            return None
        from codea1_env.rendering import rendered  # noqa: PLC0415  rich is slow to import

        return rendered(self.last_round, self._problem, self.render_mode)

    # -- an episode --

    def _begin_episode(self) -> None:
        self._round = 0
        self.last_round = None
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self._begin_round()

    @abstractmethod
    def _begin_round(self) -> None:
        """Set the turn to the coder and the infos of both agents."""

    @abstractmethod
    def _checked_action(self, agent: str, action: Any) -> Any:
        """Return the action, checked."""

    @abstractmethod
    def _act(self, agent: str, action: Any) -> None:
        """Take an action that was checked."""

    @abstractmethod
    def _shown_program(self) -> str:
        """Return the program that the tester sees now."""

    def _give_turn_to_tester(self) -> None:
        self.agent_selection = TESTER
        # Keep the infos of the previous round's judging: its reward reaches the tester on this turn.
        self.infos[TESTER] |= self._turn_info(TESTER)

    def _end_round(self, judged: JudgedRound) -> None:
        masked = judged.rewards.coder.masked
        self.last_round = judged
        self.rewards = {CODER: judged.rewards.coder.value, TESTER: judged.rewards.testers[0].value}
        self._round += 1
        over = self._round >= self.max_cycles
        self.terminations = dict.fromkeys(self.agents, over and not masked)
        self.truncations = dict.fromkeys(self.agents, masked)
        found = {agent: self._judged_info(agent, judged) for agent in self.agents}
        if over or masked:
            self.agent_selection = CODER
        else:
            self._begin_round()
        for agent in self.agents:
            self.infos[agent] |= found[agent]

    def _judged_info(self, agent: str, judged: JudgedRound) -> dict[str, Any]:
        if not self.has_infos:
            return {}
        return judged_info(judged, role=agent.partition("_")[0], tests_per_suite=self.rules.tests_per_suite)

    def _turn_info(self, agent: str) -> dict[str, Any]:
        if not self.has_infos:
            return {}
        return turn_info(
            self._problem,
            episode_id=self._episode_id,
            role=agent.partition("_")[0],
            round_=self._round,
            tests_per_suite=self.rules.tests_per_suite,
            program=self._shown_program(),
            tester_view=self.reported_view,
        )
