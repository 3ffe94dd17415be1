"""A GRPO group as an environment: N coders write programs for one problem, M testers write suites for each of them.

:Creation: `from codea1_env import code_a1_v0; env = code_a1_v0.group_env(problems="starter", n_candidates=8)`
:Agents: `coder_n` writes candidate n of N; `tester_n_m` suite m of M for it
:Agents with shared suites: `suites_per="problem"`: `coder_n`; `tester_0_m` writes suite m of M for all candidates
:Action and observation space: those of `code_a1_v0`, for every agent
:AEC form: `pettingzoo.utils.parallel_to_aec(env)`
:Many problems at once: `GroupVector`

**An episode** is one problem and `max_cycles` rounds of two steps. The coders act in the first step of a round, the
testers in the second; actions of other agents are ignored and may be missing. `infos[agent]["active"]` says whose turn
it is. All agents live from the reset to the end of their candidate, because PettingZoo does not allow an agent to
return and coders get their rewards after the testers have acted. Only the testers of a program that does not load have
no turn (`skip_invalid`); in the last round they end after the first step. If none of the programs loads, no suite
could be paid, so the round has one step; so it has without testers (M = 0). Suites for all candidates are written
without the programs, so their testers act in any case.

**Later rounds** continue each candidate without branching: its coder sees its program and what failed in one of its M
suites, which the seed draws, and repairs it. A candidate that passed all tests, was not changed or is masked is over,
and its agents are done (`rounds.trajectories`).

**Rewards** come with the last step of each round. A coder gets the reward of its program with all its suites, a tester
that of its suite; a suite for all candidates gets the mean over the programs that load. An unknown reward is masked:
it is nan, and an agent that is done with it is *truncated*. All other agents *terminate*. An agent that gives no reply
acts with `AgentUnavailable(reason)`: rewards that depend on its reply are masked, and the other agents continue.

**Infos** are those of `code_a1_v0`, with candidate and suite in `episode_id`. An agent gets them at its turn, and more
after it is judged. The counts of a coder cover all its suites; those of a suite for all candidates cover all of them.
`env.unwrapped.last_tree` holds all verdicts of the last round.

**Reset options**: those of `code_a1_v0`, and `tree`: a `codea1_env.Tree` of this shape, which is played unchanged. The
caller then owns the Mistake Book: it puts the replays into the tree and records `last_tree.book_report`. All rounds
replay the same cases.

For other rewards, derive a class and change the rewards that `step` returns; `last_tree` is another one after each step
that judged a round, and the same after all others.

**A vector** of group environments shares one round, and with it the sandbox's calls, and agents need not wait::

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

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from itertools import chain
from math import inf, isinf, isnan
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from gymnasium import spaces
from pettingzoo.utils.env import ParallelEnv

from codea1_env.book.store import MistakeBook
from codea1_env.errors import AgentUnavailable, UserError, as_lists, of_type, one_of, whole_number
from codea1_env.facts.submissions import Info, Role
from codea1_env.observations import action_space, checked_reply, judged_pairs_info, observation_of, observation_space
from codea1_env.problems import DEFAULT_SOURCE, ProblemSet, load_problems
from codea1_env.records.closing import Closing
from codea1_env.rounds.episodes import MAX_CYCLES, VIEWS, EpisodeSource, Lifecycle
from codea1_env.rounds.referee import Referee
from codea1_env.rounds.rounds import JudgedTree, RoundOptions, Rounds, SuitesPer, Tree, Turn
from codea1_env.rounds.trajectories import next_tree
from codea1_env.rules.mistake_book import Provenance
from codea1_env.rules.rewards import Rewards, reward_of_no_suite
from codea1_env.rules.ruleset import Ruleset
from codea1_env.sandbox import Limits, Sandbox

__all__ = ["MAX_GROUP", "Action", "GroupEnv", "GroupStep", "GroupVector", "coder_name", "tester_name"]

MAX_GROUP = 4096
"""Most candidates, and most suites of each group."""

Action: TypeAlias = str | AgentUnavailable
"""A raw reply, or the reason why there is none."""
_Observation: TypeAlias = Mapping[str, Any]
_Step: TypeAlias = tuple[
    dict[str, _Observation], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]
]


def coder_name(candidate: int) -> str:
    """Return the name of the agent that writes a candidate."""
    return f"coder_{candidate}"


def tester_name(group: int, suite: int) -> str:
    """Return the name of the agent that writes a suite; the group is a candidate, or 0 if suites are for all."""
    return f"tester_{group}_{suite}"


class GroupEnv(Lifecycle, ParallelEnv[str, _Observation, Action]):  # type: ignore[misc]  # PettingZoo: untyped
    """The environment; see the module's docstring for the game.

    >>> from codea1_env import code_a1_v0
    >>> env = code_a1_v0.group_env("starter", n_candidates=2, n_suites=1)
    >>> observations, infos = env.reset(seed=0, options={"problem_id": "starter/count_carries"})
    >>> programs = {"coder_0": "def count_carries(a, b): return 0", "coder_1": "def count_carries(a, b): return 1"}
    >>> observations, *_ = env.step(programs)
    >>> _, rewards, *_ = env.step(dict.fromkeys(observations, "assert count_carries(5, 5) == 1"))
    >>> rewards["coder_0"], rewards["coder_1"]
    (0.0, 1.0)
    """

    metadata: dict[str, Any] = {"name": "code_a1_group_v0", "render_modes": []}  # noqa: RUF012  PettingZoo declares it so
    render_mode = None
    kind = "parallel"
    _sent: list[Action] | None

    def __init__(
        self,
        problems: str | Path | ProblemSet = DEFAULT_SOURCE,
        *,
        n_candidates: int = 8,
        n_suites: int = 8,
        suites_per: str = "candidate",
        rules: str | Ruleset = "fixed",
        tester_view: str = "white_box",
        max_cycles: int = 1,
        book: MistakeBook | str | Path | None = None,
        sandbox: Sandbox | str = "local",
        limits: Limits | None = None,
        skip_invalid: bool = True,
        masks_sandbox_errors: bool = False,
        golden: bool | None = None,
        infos: bool = True,
        provenance: Provenance | None = None,
    ) -> None:
        """Make an environment; it starts nothing before the first step.

        Args:
            problems: a source that `load_problems` takes.
            n_candidates: N, from 1 to `MAX_GROUP`.
            n_suites: M, per group of suites, from 0 to `MAX_GROUP`.
            suites_per: `candidate` (M suites for each) or `problem` (M suites for all, written without the programs).
            rules: a `Ruleset` or the name of one.
            tester_view: `white_box` or `black_box`; suites per problem are `black_box` in any case.
            max_cycles: rounds per episode, from 1 to `MAX_CYCLES`; more than one need suites for each candidate.
            book: a Mistake Book, or the path of one; None: a new one in memory.
            sandbox: a back end or its name; environments of a process share one local pool.
            limits: bounds per call of a program; None: the defaults of `Limits`.
            skip_invalid: whether testers of a candidate that does not load end without a turn.
            masks_sandbox_errors: whether an episode is masked if the sandbox cannot be used at all; else `step` raises
                SandboxError.
            golden: whether reports state golden pass rates; None: iff the rules pay for golden tests.
            infos: False leaves only `active`, for libraries that turn infos into tensors (torchrl).
            provenance: the names of run, coder and tester that new entries of the book keep.

        Raises:
            UserError: an argument is invalid, the problems are empty, or the rules pay for golden tests and a
                problem has none.
        """
        self.problems = load_problems(problems)
        self.referee = Referee(self.problems, rules, sandbox=sandbox, limits=limits, golden=golden)
        self.rules = self.referee.rules
        self.n_candidates = whole_number("n_candidates", n_candidates, most=MAX_GROUP)
        self.n_suites = whole_number("n_suites", n_suites, most=MAX_GROUP, least=0)
        self.suites_per = SuitesPer(one_of("suites_per", suites_per, [each.value for each in SuitesPer]))
        view = one_of("tester_view", tester_view, VIEWS)
        view = view if self.suites_per is SuitesPer.CANDIDATE else "black_box"
        self.n_rounds = whole_number("max_cycles", max_cycles, most=MAX_CYCLES)
        if self.n_rounds > 1 and (self.suites_per is SuitesPer.PROBLEM or not self.n_suites):
            raise UserError(
                f"max_cycles: the next round repairs what failed in a candidate's own suites, so {max_cycles} rounds "
                f"need suites per candidate, got {self.n_suites} suites per {self.suites_per}"
            )
        self.round_options = RoundOptions(
            tester_view=view,
            skips_invalid=of_type("skip_invalid", skip_invalid, bool),
            masks_sandbox_errors=of_type("masks_sandbox_errors", masks_sandbox_errors, bool),
        )
        self.provenance = of_type("provenance", provenance or Provenance(), Provenance)
        self._has_infos = of_type("infos", infos, bool)
        self._source = EpisodeSource(self.problems, self.rules, book, frozenset({"tree"}))
        self.book = self._source.book
        self._name_agents()
        self.last_tree: JudgedTree | None = None
        """The last round after it was judged; None before the first."""

    def _name_agents(self) -> None:
        n_groups = self.n_candidates if self.suites_per is SuitesPer.CANDIDATE else 1
        self._coders = {coder_name(n): n for n in range(self.n_candidates)}
        self._testers = {tester_name(g, m): (g, m) for g in range(n_groups) for m in range(self.n_suites)}
        self.possible_agents = [*self._coders, *self._testers]
        self.agents: list[str] = []
        self.turns: dict[str, Turn] = {}
        """By agent, the turns of the present step."""
        self._spaces: dict[tuple[str, str], spaces.Space[Any]] = {}

    # -- the PettingZoo interface --

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the agent's space, always the same object."""
        if (agent, "observation") not in self._spaces:
            self._spaces[self.require_agent(agent), "observation"] = observation_space(self.n_rounds)
        return self._spaces[agent, "observation"]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the agent's space, always the same object."""
        if (agent, "action") not in self._spaces:
            self._spaces[self.require_agent(agent), "action"] = action_space()
        return self._spaces[agent, "action"]

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, _Observation], dict[str, dict[str, Any]]]:
        """Start an episode on the next problem (see the module's docstring for `options`).

        A seed restarts everything random; without one, the random stream continues.
        """
        self.require_open()
        tree = self._choose_tree(seed, self._source.check_options(options or {}))
        self.last_tree = None
        self.agents = self.possible_agents[:]
        self._turn_infos: dict[str, Info] = {}
        self._begin_round(tree)
        return self._observations(), self._filter_infos(self._infos())

    def step(self, actions: Mapping[str, Action]) -> _Step:
        """Take the replies of the agents whose turn it is; any text is legal.

        Raises:
            UserError: no agent can act, the actions are not a mapping or name an unknown agent, one is missing, or
                one is neither text nor AgentUnavailable.
            SandboxError: the sandbox cannot be used at all; the same actions may be passed again.
        """
        self.require_turn()
        replies = self.replies(actions)
        if self._sent is None:
            submit = self._rounds.submit_programs if self.acting == "coder" else self._rounds.submit_suites
            submit(replies)
        elif replies != self._sent:
            raise RuntimeError("actions changed after they had been sent to a shared round")
        if self.acting == "coder":
            return self._begin_tester_turns()
        return self._finish({}, {})

    def close(self) -> None:
        """Close the book if this environment opened it; idempotent. The sandbox is shared and stays open."""
        super().close()
        self._source.close()

    def about(self) -> str:
        """Return what is played, for people: the problems, the rules and the size of the group."""
        return f"{super().about()}; {self.n_candidates} candidates, {self.n_suites} suites per {self.suites_per}"

    # -- for `GroupVector` --

    def join(self, shared: Rounds, place: int) -> None:
        """Play this episode as one tree of a round whose owner submits the replies; only after `reset`."""
        self._rounds, self._place, self._sent = shared, place, []

    def send(self, replies: list[Action]) -> None:
        """Expect a `step` with these replies; the owner of the shared round has submitted them."""
        self._sent = replies

    def replies(self, actions: Mapping[str, Action]) -> list[Action]:
        """Return the replies of the agents whose turn it is, in their order; texts are cut to the space's bound.

        Raises:
            UserError: as `step`.
        """
        checked = self.checked_actions(actions, self.turns)
        replies = [checked[agent] for agent in self.turns]
        for position, (agent, action) in enumerate(zip(self.turns, replies, strict=True)):
            if not isinstance(action, AgentUnavailable):
                replies[position], self._n_cut[agent] = checked_reply(agent, action)
        return replies

    # -- an episode --

    def _choose_tree(self, seed: int | None, options: Mapping[str, Any]) -> Tree:
        self._keeps_book = options.get("tree") is None
        if not self._keeps_book:
            self._source.draw.seed(seed)
            tree = of_type("reset option tree", options["tree"], Tree)
            own = (self.n_candidates, self.n_suites, self.suites_per)
            if (tree.n_candidates, tree.n_suites, tree.suites_per) != own or tree.round:
                shape = "{} candidates and {} suites per {}".format(*own)
                raise UserError(f"reset option tree must have {shape} and be of the first round, got {tree!r:.200}")
            return tree
        self._episode = episode = self._source.begin(seed, options)
        return Tree(
            episode.problem,
            self.n_candidates,
            self.n_suites,
            self.suites_per,
            self._source.read_replays(episode),
            name=episode.id,
            seed=(episode.number,),
        )

    def _begin_round(self, tree: Tree) -> None:
        self.tree = tree
        self._positions = {number: n for n, number in enumerate(tree.numbers)}
        self._rounds, self._place = self.referee.open([tree], self.round_options), 0
        self._sent = None
        self._n_cut: dict[str, int] = {}
        self._idle: frozenset[str] = frozenset()
        """Testers that have no turn in this round, and are paid already."""
        self._take_turns("coder")

    def _take_turns(self, role: Role) -> None:
        numbers = self.tree.numbers
        self.acting = role
        self.turns = {
            coder_name(numbers[turn.candidate])
            if role == "coder"
            else tester_name(numbers[turn.candidate], turn.suite): turn
            for turn in self._rounds.turns_of(self._place, role)
        }
        self._turn_infos |= {agent: turn.info for agent, turn in self.turns.items()}

    def _begin_tester_turns(self) -> _Step:
        """Begin the testers' turns; testers without a turn are paid, and if none has one, the round is over."""
        self._take_turns("tester")
        early_verdicts = self._rounds.early_verdicts()[self._place]
        self._idle = frozenset(agent for agent in self.agents if agent in self._testers and agent not in self.turns)
        rewards, infos = {}, {}
        for agent in (agent for agent in self.agents if agent in self._idle):
            verdict = early_verdicts[self._position(agent)]
            assert verdict is not None  # else the tester would have a turn
            rewards[agent] = reward_of_no_suite(verdict, self.rules).value
            infos[agent] = {"verdict": verdict.value, "masked": isnan(rewards[agent])}
        if not self.turns:
            return self._finish(rewards, infos)
        infos = {agent: info | infos.get(agent, {}) for agent, info in self._infos().items()}
        is_last = self.tree.round + 1 == self.n_rounds
        return self._make_step(dict.fromkeys(self.agents, 0.0) | rewards, infos, self._idle if is_last else ())

    def _finish(self, rewards: dict[str, float], judged_infos: dict[str, dict[str, Any]]) -> _Step:
        """Pay all agents that have no reward yet, and begin the next round of the candidates that play it."""
        self.turns = {}
        judged = self.last_tree = self._rounds.judged[self._place]
        size = None
        if self._keeps_book and (book_report := judged.book_report) is not None:
            where = replace(self.provenance, episode_id=self.tree.name, round=self.tree.round)
            delta = self._source.record(book_report, where)
            size = None if delta is None else delta.size
        for agent in [agent for agent in self.agents if agent not in rewards]:
            is_paid = agent in self._idle
            rewards[agent] = 0.0 if is_paid else self._reward_of(judged, agent)
            judged_infos[agent] = {} if is_paid else self._judged_info(judged, agent, size)
        done = self.agents
        if self.tree.round + 1 < self.n_rounds and (following := next_tree(judged)) is not None:
            if self._keeps_book:
                following = replace(following, replayed=self._source.read_replays(self._episode))
            done = [agent for agent in self.agents if self._group(agent) not in following.numbers]
            self._begin_round(following)
        infos = {agent: info | judged_infos[agent] for agent, info in self._infos().items()}
        return self._make_step({agent: rewards[agent] for agent in self.agents}, infos, done, judged.tree.round + 1)

    def _make_step(
        self, rewards: dict[str, float], infos: dict[str, dict[str, Any]], done: Collection[str], round_: int = 0
    ) -> _Step:
        """Return the result of a step, and remove the agents that are done."""
        truncations = {agent: agent in done and isnan(rewards[agent]) for agent in self.agents}
        terminations = {agent: agent in done and not truncations[agent] for agent in self.agents}
        observations = self._observations(round_)
        self.agents = [agent for agent in self.agents if agent not in done]
        return observations, rewards, terminations, truncations, self._filter_infos(infos)

    def _group(self, agent: str) -> int:
        """Return the number of an agent's candidate, or 0 for a suite that tests all."""
        return self._testers[agent][0] if agent in self._testers else self._coders[agent]

    def _position(self, agent: str) -> int:
        """Return the position of an agent's candidate in the tree of this round, or 0 for a suite that tests all."""
        return self._positions[self._group(agent)]

    def _reward_of(self, judged: JudgedTree, agent: str) -> float:
        if agent in self._testers:
            return float(judged.tester_rewards[self._position(agent), self._testers[agent][1]])
        return float(judged.coder_rewards[self._position(agent)])

    # -- observations, infos and actions --

    def _observations(self, round_: int = 0) -> dict[str, _Observation]:
        return {
            agent: self.turns[agent].observation if agent in self.turns else observation_of(self.tree.problem, round_)
            for agent in self.agents
        }

    def _infos(self) -> dict[str, dict[str, Any]]:
        return {agent: {**self._turn_infos.get(agent, {}), "active": agent in self.turns} for agent in self.agents}

    def _filter_infos(self, infos: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        return infos if self._has_infos else {agent: {"active": info["active"]} for agent, info in infos.items()}

    def _judged_info(self, judged: JudgedTree, agent: str, book_size: int | None) -> dict[str, Any]:
        """Return the infos of an agent whose reply was judged; only `masked` if the sandbox could not be used."""
        reward = self._reward_of(judged, agent)
        if judged.report is None:
            return {"masked": isnan(reward)}
        n, m = self._position(agent), self._testers[agent][1] if agent in self._testers else None
        candidates, parts = judged.report.candidates[n : n + 1], judged.rewards[n].coder.weighted()
        if m is not None and judged.report.shares_suites:
            candidates, parts = judged.report.candidates, {"mean_over_candidates": reward}
        elif m is not None:
            parts = judged.rewards[n].testers[m].weighted()
        info = judged_pairs_info(
            [(report, report.suites if m is None else report.suites[m : m + 1]) for report in candidates],
            {} if isnan(reward) else parts,
            tests_per_suite=self.rules.tests_per_suite,
            book_size=book_size,
            masked=isnan(reward),
        )
        return info | {"truncated_chars": self._n_cut[agent]} if self._n_cut.get(agent) else info


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
        """By environment, the last step in which it took part."""
        self._sent: list[Mapping[str, Action]] = []
        self._work: Future[None] | None = None
        """Judges the actions that were sent."""
        self._judged: list[list[JudgedTree]] = []
        """By environment, the rounds of the episode so far."""
        self._paid: list[list[dict[str, float]]] = []
        """By environment and round, the rewards by agent."""
        self._judge_s = 0.0

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
        self._rounds, self._steps, self._sent, self._judged, self._paid, self._judge_s = None, [], [], [], [], 0.0
        given = [None] * len(self.envs) if options is None else as_lists(options=options)[0]
        if not 1 <= len(given) <= len(self.envs):
            raise UserError(f"expected options for {len(self.envs)} environments, got {len(given)}")
        first = None if seed is None else whole_number("seed", seed, least=0, most=inf)
        steps = []
        for position, (env, its_options) in enumerate(zip(self.envs, given, strict=False)):
            observations, infos = env.reset(seed=None if first is None else first + position, options=its_options)
            steps.append(GroupStep(observations, {}, {}, {}, infos))
        self._steps, self._judged, self._paid = steps, [[] for _ in steps], [[{}] for _ in steps]
        self._share_round()
        return list(steps)

    def _share_round(self) -> None:
        """Let the environments whose coders have their turns play their round together."""
        members = [member for member in self._playing() if member.turns]
        self._judge_s = self.judge_s
        self._rounds = self.referee.open([member.tree for member in members], self._options)
        for place, member in enumerate(members):
            member.join(self._rounds, place)

    def turns(self) -> list[Turn]:
        """Return all turns, environment by environment, in the order of agents.

        Observations and infos are those that the environments returned; `tree` is the position of the environment.
        """
        return [
            replace(turn, observation=step.observations[agent], info=step.infos[agent], tree=place)
            for place, (member, step) in enumerate(zip(self._playing(), self._steps, strict=True))
            for agent, turn in self._turns_of(member).items()
        ]

    @property
    def acting(self) -> Role:
        """Whose turn it is in all environments; those that are at the next round already wait for the others."""
        return "tester" if any(member.turns and member.acting == "tester" for member in self._playing()) else "coder"

    def _turns_of(self, member: GroupEnv) -> Mapping[str, Turn]:
        return member.turns if member.turns and member.acting == self.acting else {}

    def actions(self, replies: Sequence[Action]) -> list[dict[str, Action]]:
        """Return actions by agent, one mapping per environment, from replies in the order of `turns`.

        Raises:
            UserError: their number differs from the number of turns.
        """
        names = [(place, agent) for place, member in enumerate(self._playing()) for agent in self._turns_of(member)]
        by_agent: list[dict[str, Action]] = [{} for _ in self._playing()]
        for (place, agent), reply in zip(*as_lists(turns=names, replies=replies), strict=True):
            by_agent[place][agent] = reply
        return by_agent

    def send(self, actions: Sequence[Mapping[str, Action]]) -> None:
        """Submit the actions of all environments that play; return at once, while they are judged.

        Raises:
            UserError: as `GroupEnv.step`, their number is wrong, or the call does not follow `reset` or `recv`.
        """
        members = self._playing()
        if self._sent or self._rounds is None or not any(member.agents for member in members):
            raise UserError("send must be called after reset or recv, while the episode is running")
        members, given = as_lists(environments=members, actions=actions)
        acting = [bool(self._turns_of(member)) for member in members]
        replies = [
            member.replies(its_actions) if acts else []
            for member, its_actions, acts in zip(members, given, acting, strict=True)
        ]
        for member, its_replies, acts in zip(members, replies, acting, strict=True):
            if acts:
                member.send(its_replies)
        submit = self._rounds.submit_programs if self.acting == "coder" else self._rounds.submit_suites
        self._work = self.referee.start(submit, list(chain.from_iterable(replies)))
        self._sent = given

    def recv(self) -> list[GroupStep]:
        """Return one step per environment that plays, an empty one where the episode was over before; waits.

        Raises:
            UserError: no actions were sent, or a reward is not finite. An infinite one would train nothing but nan.
            SandboxError: the sandbox cannot be used at all, and the environments do not mask that. The episode is lost;
                begin another one with `reset`.
        """
        if not self._sent or self._work is None:
            raise UserError("recv must be called after send")
        self._work.result()  # raises before any member has stepped
        sent, self._sent = self._sent, []
        acting = [(place, list(turns)) for place, m in enumerate(self._playing()) if (turns := self._turns_of(m))]
        steps = [GroupStep({}, {}, {}, {}, {}) for _ in sent]
        for place, agents in acting:
            member, before = self._members[place], self._members[place].last_tree
            self._steps[place] = steps[place] = step = GroupStep(*self.envs[place].step(dict(sent[place])))
            problem, paid = member.tree.problem.id, self._paid[place][-1]
            for agent in sorted({*paid, *agents} & step.rewards.keys()):
                reward = step.rewards[agent]
                if not isinstance(reward, Real) or isinf(reward):
                    raise UserError(
                        f"environment: the reward of {agent} on problem {problem} must be a finite number, or nan "
                        f"where it is masked, got {reward!r}"
                    )
                paid[agent] = paid.get(agent, 0.0) + float(reward)
            if member.last_tree is not None and member.last_tree is not before:
                self._judged[place].append(member.last_tree)
                self._paid[place].append({})
        if self.acting == "coder" and any(member.turns for member in self._playing()):
            self._share_round()
        return steps

    # -- results --

    def trees(self) -> list[JudgedTree]:
        """Return the judged trees of a finished episode's last rounds, with verdicts and the rewards of the *rules*.

        Raises:
            UserError: the episode is still running.
        """
        return [self.rounds(place)[-1] for place in range(max(1, len(self._steps)))]

    def rounds(self, place: int) -> tuple[JudgedTree, ...]:
        """Return the judged trees of one environment's finished episode, round by round.

        Raises:
            UserError: the episode is still running.
        """
        if not self._judged or any(member.agents for member in self._playing()):
            raise UserError("the episode is still running")
        return tuple(self._judged[self._checked(place)])

    def coder_rewards(self, place: int, round_: int = 0) -> Rewards:
        """Return the rewards that one *environment* has given its coders in a round, (N,): nan where masked."""
        paid = self._paid[self._checked(place)][round_]
        return np.array([paid.get(coder_name(n), np.nan) for n in range(self._members[place].n_candidates)])

    def tester_rewards(self, place: int, round_: int = 0) -> Rewards:
        """Return the rewards that one *environment* has given its testers in a round, (G, M).

        They are nan where they are masked, or where there was no turn.
        """
        paid, member = self._paid[self._checked(place)][round_], self._members[place]
        n_groups = member.n_candidates if member.suites_per is SuitesPer.CANDIDATE else 1
        names = [tester_name(g, m) for g in range(n_groups) for m in range(member.n_suites)]
        return np.array([paid.get(name, np.nan) for name in names]).reshape(n_groups, member.n_suites)

    @property
    def judge_s(self) -> float:
        """Seconds of checking and judging since the reset."""
        return self._judge_s + (self._rounds.judge_s if self._rounds is not None else 0.0)

    def close(self) -> None:
        """Close all environments."""
        for env in self.envs:
            env.close()

    def _checked(self, place: int) -> int:
        return whole_number("place", place, least=0, most=len(self._steps) - 1)

    def _playing(self) -> list[GroupEnv]:
        return self._members[: len(self._steps)]
