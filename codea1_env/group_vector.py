"""A vector of group environments: they share one round, and with it the sandbox's calls, and agents need not wait.

::

    vector = GroupVector([code_a1_v0.group_env(problems="starter") for _ in range(8)])
    steps = vector.reset(seed=0)
    while turns := vector.turns():
        vector.send(vector.actions([reply to each of turns]))   # returns at once, while the sandbox works
        steps = vector.recv()                                   # waits

A vector of one environment is the same as `code_a1_v0.group_env`. A driver with several vectors of one referee can
collect replies for the next vector between `send` and `recv`. Members may be of a derived class or wrapped: `recv`
calls their own `step`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from itertools import chain
from math import inf
from typing import Any, NamedTuple

import numpy as np
from pettingzoo.utils.env import ParallelEnv

from codea1_env.errors import UserError, as_lists, of_type, whole_number
from codea1_env.group_env import Action, GroupEnv, coder_name, tester_name
from codea1_env.records.closing import Closing
from codea1_env.rounds.referee import Referee
from codea1_env.rounds.rounds import Rounds, Turn
from codea1_env.rounds.trees import JudgedTree, Rewards

__all__ = ["GroupStep", "GroupVector"]


class GroupStep(NamedTuple):
    """The result of `ParallelEnv.step`; after a reset the three fields in the middle are empty."""

    observations: dict[str, Any]
    rewards: dict[str, float]
    terminations: dict[str, bool]
    truncations: dict[str, bool]
    infos: dict[str, dict[str, Any]]


class GroupVector(Closing):
    """Group environments that play their episodes in one shared round. Not thread-safe."""

    def __init__(
        self, envs: Sequence[ParallelEnv[str, dict[str, Any], Action]], referee: Referee | None = None
    ) -> None:
        """Make a vector of environments with equal settings.

        Args:
            envs: at least one; each a `GroupEnv` or a wrapper of one.
            referee: judges for all, in its thread; vectors that alternate should share one. None: the referee of the
                first environment.

        Raises:
            UserError: no environment is given, one is not a group environment or is passed twice, or they differ in
                rules or in round options.
        """
        self.envs = as_lists(envs=envs)[0]
        members: list[Any] = [getattr(env, "unwrapped", None) for env in self.envs]
        if not members or not all(isinstance(member, GroupEnv) for member in members):
            raise UserError("a vector needs environments made by code_a1_v0.group_env, at least one")
        if len(set(map(id, members))) < len(members):
            raise UserError("a vector can hold an environment only once")
        self._members: list[GroupEnv] = members
        self._options = self._members[0].round_options
        self.referee = of_type("referee", referee or self._members[0].referee, Referee)
        for member in self._members:
            if member.rules != self.referee.rules or member.round_options != self._options:
                raise UserError("environments of a vector must have the same rules, view and handling of faults")
        self._rounds: Rounds | None = None
        self._steps: list[GroupStep] = []
        self._sent: list[Mapping[str, Action]] = []
        self._work: Future[None] | None = None
        """Judges the actions that were sent."""
        self._total_rewards: list[dict[str, float]] = []

    def __repr__(self) -> str:
        return f"<GroupVector of {len(self.envs)} {self._members[0]!r}>"

    def reset(
        self, seed: int | None = None, options: Sequence[Mapping[str, Any] | None] | None = None
    ) -> list[GroupStep]:
        """Begin an episode in each environment; nothing runs yet.

        Args:
            seed: for the first environment; each further one gets the next number. None: their random streams continue.
            options: reset options, one per environment; if there are fewer, only that many environments play, the first
                ones. None: no options, and all play.

        Returns:
            One step per environment that plays.

        Raises:
            UserError: as `GroupEnv.reset`, or there are more options than environments. Then no environment plays.
        """
        self._rounds, self._steps, self._sent, self._total_rewards = None, [], [], []
        given = [None] * len(self.envs) if options is None else as_lists(options=options)[0]
        if not 1 <= len(given) <= len(self.envs):
            raise UserError(f"expected options for {len(self.envs)} environments, got {len(given)}")
        first = None if seed is None else whole_number("seed", seed, least=0, most=inf)
        steps = []
        for position, (env, its_options) in enumerate(zip(self.envs, given, strict=False)):
            found = env.reset(seed=None if first is None else first + position, options=its_options)
            steps.append(GroupStep(found[0], {}, {}, {}, found[1]))
        members = self._members[: len(steps)]
        self._rounds = self.referee.open([member.tree for member in members], self._options)
        for place, member in enumerate(members):
            member.join(self._rounds, place)
        self._steps, self._total_rewards = steps, [{} for _ in steps]
        return self._steps

    def turns(self) -> list[Turn]:
        """Return all turns, environment by environment, in the order of agents.

        Observations and infos are those that the environments returned; `tree` is the position of the environment.
        """
        return [
            replace(turn, observation=step.observations[agent], info=step.infos[agent], tree=place)
            for place, (member, step) in enumerate(zip(self._playing(), self._steps, strict=True))
            for agent, turn in member.turns.items()
        ]

    def actions(self, replies: Sequence[Action]) -> list[dict[str, Action]]:
        """Return actions by agent, one mapping per environment, from replies in the order of `turns`.

        Raises:
            UserError: their number differs from the number of turns.
        """
        names = [(place, agent) for place, member in enumerate(self._playing()) for agent in member.turns]
        found: list[dict[str, Action]] = [{} for _ in self._playing()]
        for (place, agent), reply in zip(*as_lists(turns=names, replies=replies), strict=True):
            found[place][agent] = reply
        return found

    def send(self, actions: Sequence[Mapping[str, Action]]) -> None:
        """Submit the actions of all environments that play; return at once, while they are judged.

        Raises:
            UserError: as `GroupEnv.step`, their number is wrong, or the call does not follow `reset` or `recv`.
        """
        members = self._playing()
        if self._sent or self._rounds is None or not any(member.agents for member in members):
            raise UserError("send must be called after reset or recv, while the episode is running")
        members, given = as_lists(environments=members, actions=actions)
        replies = [member.replies(its_actions) for member, its_actions in zip(members, given, strict=True)]
        for member, its_replies in zip(members, replies, strict=True):
            member.send(its_replies)
        self._work = self.referee.start(self._rounds.submit, members[0].acting, list(chain.from_iterable(replies)))
        self._sent = given

    def recv(self) -> list[GroupStep]:
        """Return one step per environment that plays, an empty one where the episode was over before; waits.

        Raises:
            UserError: no actions were sent.
            SandboxError: the sandbox cannot be used at all, and the environments do not mask that. The episode is lost;
                begin another one with `reset`.
        """
        if not self._sent or self._work is None:
            raise UserError("recv must be called after send")
        self._work.result()  # raises before any member has stepped
        sent, self._sent = self._sent, []
        acting = [list(member.turns) for member in self._playing()]
        self._steps = [
            GroupStep(*env.step(dict(given))) if member.agents else GroupStep({}, {}, {}, {}, {})
            for env, member, given in zip(self.envs, self._playing(), sent, strict=False)
        ]
        for total, step, agents in zip(self._total_rewards, self._steps, acting, strict=True):
            for agent in {*total, *agents} & step.rewards.keys():
                total[agent] = total.get(agent, 0.0) + step.rewards[agent]
        return self._steps

    # -- results --

    def trees(self) -> list[JudgedTree]:
        """Return the judged trees of a finished episode, with verdicts and the rewards of the *rules*.

        Raises:
            UserError: the episode is still running.
        """
        found = [member.last_tree for member in self._playing()]
        if None in found or not found:
            raise UserError("the episode is still running")
        return found  # type: ignore[return-value]  # just checked

    def coder_rewards(self, place: int) -> Rewards:
        """Return the rewards that one *environment* has given its coders, (N,): nan where masked."""
        total, tree = self._rewards_of(place), self._members[place].tree
        return np.array([total.get(coder_name(n), np.nan) for n in range(tree.n_candidates)])

    def tester_rewards(self, place: int) -> Rewards:
        """Return the rewards that one *environment* has given its testers, (G, M): nan if masked or without a turn."""
        total, tree = self._rewards_of(place), self._members[place].tree
        names = [tester_name(g, m) for g in range(tree.n_groups) for m in range(tree.n_suites)]
        return np.array([total.get(name, np.nan) for name in names]).reshape(tree.n_groups, tree.n_suites)

    @property
    def judge_s(self) -> float:
        """Seconds of checking and judging since the reset."""
        return self._rounds.judge_s if self._rounds is not None else 0.0

    def close(self) -> None:
        """Close all environments."""
        for env in self.envs:
            env.close()

    def _rewards_of(self, place: int) -> dict[str, float]:
        return self._total_rewards[whole_number("place", place, least=0, most=len(self._total_rewards) - 1)]

    def _playing(self) -> list[GroupEnv]:
        return self._members[: len(self._steps)]
