"""The game of `code_a1_v0` with numbers as actions: both agents choose from a bank of programs and tests.

:Creation: `from codea1_env import bank_v0; env = bank_v0.env(bank="starter")`
:Agents: `coder_0`, then `tester_0`; AEC is canonical
:Action space: `Discrete(N)` for the coder, `Discrete(M)` for the tester; with `equal_actions=True` the larger for both
:Observation space: `Box(0, 1)` of P + N numbers: which problem, which program (the tester's, white box)
:Parallel API: `parallel_env()`, turn-based: the tester sees the program. `blind_parallel_env()`: both act at once

**Purpose.** Best responses, equilibria and exploitability of this game can be computed exactly. So learners can be
compared with the exact solution, in seconds and without a model; `codea1_lab.games` computes it.

**A round.** The coder chooses one of the N programs of the problem, the tester one of its M suites. Verdicts come from
the judge and payoffs from `rules.rewards`, as in `code_a1_v0`, but they are computed beforehand (`codea1_env.bank`) and
stored on disk. An episode is one problem and `max_cycles` rounds. The tester has a turn even after a program that does
not load.

**No Mistake Book**: a round does not depend on earlier ones. `codea1 game questions` computes the book's effect.

**Infos** are those of `code_a1_v0` (none with `infos=False`); both agents get their rewards together after the tester
has acted. No reward is ever masked, since a bank cannot be made with an unknown payoff.

**Reset options**: `problem_id`. Others are logged and ignored.

**Version history**: v0, first version.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from codea1_env.bank import JudgedBank, load_bank
from codea1_env.bank.sources import BankSource
from codea1_env.errors import UnknownName, UserError
from codea1_env.facts.verdicts import ProblemReport
from codea1_env.judging.judged_round import JudgedRound
from codea1_env.rounds.episodes import (
    CODER,
    METADATA,
    TESTER,
    ProblemDraw,
    SimultaneousEnv,
    TurnBasedParallelEnv,
    TurnByTurnEnv,
    TwoAgentGame,
    takes_arguments_of,
)
from codea1_env.rules.rewards import CandidateRewards, score

__all__ = ["CODER", "TESTER", "blind_parallel_env", "env", "parallel_env", "raw_env"]

_log = logging.getLogger(__name__)

Features = NDArray[np.float32]


class raw_env(TwoAgentGame):  # noqa: N801  PettingZoo's name
    """The environment without wrappers; see the module's docstring for the game. An action is a number."""

    metadata: dict[str, Any] = {**METADATA, "name": "bank_v0"}  # noqa: RUF012  PettingZoo declares it so
    _program: int | None

    def __init__(
        self,
        bank: BankSource | JudgedBank = "starter",
        *,
        tester_view: str = "white_box",
        max_cycles: int = 1,
        infos: bool = True,
        equal_actions: bool = False,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        """Make an environment; this judges a bank that is not judged yet, which takes seconds the first time.

        Args:
            bank: a judged bank, or an argument of `codea1_env.bank.load_bank`: a problem source, a run folder, a bank.
            tester_view: `white_box` (the tester sees which program the coder chose) or `black_box`.
            max_cycles: rounds per episode.
            infos: False leaves them empty, for libraries that turn them into tensors (torchrl).
            equal_actions: whether both agents have max(N, M) actions, for libraries that need equal spaces. An agent's
                actions from its own number on repeat its first ones, so the values of equilibria stay the same.
            render_mode: `human` prints each judged round, `ansi` makes `render()` return it.
            options: passed to `load_bank` (`rules`, `recipe`, `limit`, `cache`, ...); a judged bank takes none.

        Raises:
            UserError: an argument is invalid, or the bank does not exist.
        """
        super().__init__(tester_view=tester_view, max_cycles=max_cycles, render_mode=render_mode, infos=infos)
        if isinstance(bank, JudgedBank) and options:
            raise UserError(f"{', '.join(sorted(options))} must be passed when the bank is judged, not later")
        self.bank = bank if isinstance(bank, JudgedBank) else load_bank(bank, **options)
        self.rules = self.bank.rules
        self._positions = {problem.bank.problem.id: p for p, problem in enumerate(self.bank.problems)}
        length = len(self.bank.problems) + self.bank.bank.n_programs
        self._observation_spaces = {
            agent: spaces.Box(0.0, 1.0, (length,), np.float32) for agent in self.possible_agents
        }
        self._n_actions = {CODER: self.bank.bank.n_programs, TESTER: self.bank.bank.n_suites}
        sizes = dict.fromkeys(self._n_actions, max(self._n_actions.values())) if equal_actions else self._n_actions
        self._action_spaces = {agent: spaces.Discrete(sizes[agent]) for agent in self.possible_agents}
        self._draw = ProblemDraw(len(self.bank.problems))
        self._rounds: dict[tuple[int, int, int], tuple[ProblemReport, CandidateRewards]] = {}
        self._program = None
        self.agent_selection = CODER

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Start an episode on the next problem. A seed restarts everything random."""
        self.require_open()
        rng = self._draw.seed(seed)
        self._position = self._choose_problem(options or {})
        self._problem = self.bank.problems[self._position].bank.problem
        self._episode_id = f"{rng.integers(2**63):016x}"
        self._begin_episode()

    def observe(self, agent: str) -> Features:
        """Return the agent's observation: ones at the problem and at the chosen program."""
        n_problems = len(self.bank.problems)
        seen = np.zeros(n_problems + self.bank.bank.n_programs, np.float32)
        seen[self._position] = 1.0
        if self.require_agent(agent) == TESTER and self.tester_view == "white_box" and self._program is not None:
            seen[n_problems + self._program] = 1.0
        return seen

    def about(self) -> str:
        """Return what is played, for people: the bank, the rules and what the tester sees."""
        bank = self.bank.bank
        size = f"{len(self.bank.problems)} problems, {bank.n_programs} programs x {bank.n_suites} suites"
        return f"{bank.name:.60}, {size}; rules {self.rules.name:.40}; {self.tester_view}"

    # -- a round --

    def _begin_round(self) -> None:
        self._program = None
        self.agent_selection = CODER
        for agent in self.agents:
            self.infos[agent] |= self._turn_info(agent)

    def _act(self, agent: str, action: int) -> None:
        if agent == CODER:
            self._program = action
            self._pass_to_tester()
        else:
            assert self._program is not None  # the coder has acted
            self._finish_round(self._judge(self._program, action))

    def _judge(self, program: int, suite: int) -> JudgedRound:
        """Return a round; its report and rewards are computed once."""
        problem, place = self.bank.problems[self._position], (self._position, program, suite)
        if place not in self._rounds:
            report = problem.duel(program, suite)
            self._rounds[place] = ProblemReport(self._problem.id, (report,)), score(report, self.rules)
        replies = problem.bank.programs[program].reply, problem.bank.suites[suite].reply
        return JudgedRound(self._problem, self._episode_id, self._round, *replies, *self._rounds[place], book=None)

    # -- options and actions --

    def _choose_problem(self, options: Mapping[str, Any]) -> int:
        for key in sorted(map(str, options.keys() - {"problem_id"})):
            _log.warning("reset: unknown option %r is ignored; known is problem_id", key)
        problem_id = options.get("problem_id")
        if problem_id is not None:
            if problem_id not in self._positions:
                raise UnknownName.of("problem of the bank", str(problem_id), self._positions)
            return self._positions[problem_id]
        return self._draw.next_position()

    def _checked_action(self, agent: str, action: int | None) -> int:
        if not isinstance(action, int | np.integer) or not self._action_spaces[agent].contains(np.int64(action)):
            n = self._action_spaces[agent].n
            raise UserError(f"{agent}'s action must be a whole number from 0 to {n - 1}, got {action!r:.100}")
        return int(action) % self._n_actions[agent]

    def _shown_program(self) -> str:
        if self.tester_view != "white_box" or self._program is None:
            return ""
        return self.bank.problems[self._position].bank.programs[self._program].reply


@takes_arguments_of(raw_env)
def env(game: raw_env) -> TurnByTurnEnv:
    """Return the AEC environment: the agents act one after the other."""
    return TurnByTurnEnv(game)


@takes_arguments_of(raw_env)
def parallel_env(game: raw_env) -> TurnBasedParallelEnv:
    """Return the turn-based parallel view: each step takes one action, `infos[a]["active_agent"]` says whose."""
    return TurnBasedParallelEnv(game)


@takes_arguments_of(raw_env, tester_view="black_box")
def blind_parallel_env(game: raw_env) -> SimultaneousEnv:
    """Return the simultaneous parallel view: the matrix game, in which the tester never sees a program."""
    return SimultaneousEnv(game)
