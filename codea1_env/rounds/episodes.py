"""What environments have in common: their life from `reset` to `close`, where episodes come from (`EpisodeSource`: the
next problem, or the one in reset's options, and the Mistake Book), and all that the games of two agents share.

PettingZoo's wrappers look actions up in a dictionary, so that a misspelled agent is a KeyError somewhere inside, and
each of them has its own idea of a step too many. Here the environment checks these things itself, for all its views.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import wraps
from inspect import getdoc, signature
from math import inf
from pathlib import Path
from typing import Any, ClassVar, ParamSpec, TypeVar

import numpy as np
from gymnasium.utils import seeding
from pettingzoo import AECEnv
from pettingzoo.utils.conversions import aec_to_parallel_wrapper, turn_based_aec_to_parallel_wrapper
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from codea1_env.book.store import MistakeBook
from codea1_env.errors import UnknownName, UserError, of_type, one_of, whole_number
from codea1_env.facts.verdicts import ProblemReport, ValidCase
from codea1_env.judging.judged_round import JudgedRound
from codea1_env.observations import judged_pairs_info, turn_info
from codea1_env.problems import Problem, ProblemSet
from codea1_env.records.closing import Closing
from codea1_env.rounds.rounds import require_golden_tests
from codea1_env.rules.mistake_book import BookDelta, Provenance
from codea1_env.rules.ruleset import BookUpdate, Ruleset

CODER = "coder_0"
TESTER = "tester_0"
MAX_CYCLES = 1_000_000
"""Most rounds of an episode."""
METADATA: Mapping[str, Any] = {"render_modes": ["human", "ansi"], "render_fps": 1, "is_parallelizable": False}
"""The agents of both games, as PettingZoo declares them."""
VIEWS = ("white_box", "black_box")

_log = logging.getLogger(__name__)


class View(Closing):
    """An environment, or a view of one: it closes after a `with` block, and its repr says what is played."""

    kind: ClassVar[str] = "raw"
    """The interface, for people."""
    unwrapped: Any

    def __repr__(self) -> str:
        game = self.unwrapped
        state = "closed" if game.is_closed else "no episode"
        if game.agents and not game.is_closed:
            state = f"turn of {getattr(game, 'agent_selection', None) or f'{game.acting}s'}"
        return f"<{game.metadata['name']} {self.kind}: {game.about()}; {state}>"


class Lifecycle(View):
    """An environment itself: open, then in an episode, between episodes, and at last closed."""

    metadata: dict[str, Any]
    agents: list[str]
    possible_agents: list[str]
    problems: Any
    rules: Any
    is_closed = False
    _observation_spaces: Mapping[str, Any]
    _action_spaces: Mapping[str, Any]

    def observation_space(self, agent: str) -> Any:
        """Return the agent's space, always the same object."""
        return self._observation_spaces[self.require_agent(agent)]

    def action_space(self, agent: str) -> Any:
        """Return the agent's space, always the same object."""
        return self._action_spaces[self.require_agent(agent)]

    def about(self) -> str:
        """Return what is played, for people: the problems and the rules."""
        return f"{self.problems.name:.60}, {len(self.problems)} problems; rules {self.rules.name:.40}"

    def close(self) -> None:
        """Refuse all further episodes; idempotent. The sandbox is shared and stays open."""
        self.is_closed = True

    def require_open(self) -> None:
        """Raise UserError if the environment is closed."""
        if self.is_closed:
            raise UserError(f"{self.metadata['name']}: the environment is closed; make another one")

    def require_turn(self) -> None:
        """Raise UserError if the environment is closed, or nobody can act: before the first reset, or after the end."""
        self.require_open()
        if not self.agents:
            raise UserError(f"{self.metadata['name']}: no episode is under way; call reset() to begin one")

    def require_agent(self, agent: str) -> str:
        """Return the name of an agent.

        Raises:
            UnknownName: the agent does not exist.
        """
        if agent not in self.possible_agents:
            raise UnknownName.of("agent", str(agent), self.possible_agents)
        return agent

    def checked_actions(self, actions: object, acting: Iterable[str]) -> Mapping[str, Any]:
        """Return the actions of a parallel step, of which those of agents that do not act are ignored.

        Raises:
            UserError: they are not a mapping, name an unknown agent, or lack an agent that acts.
        """
        if not isinstance(actions, Mapping):
            got = f"{type(actions).__name__} ({actions!r:.100})"
            raise UserError(f"step takes a dictionary, as in {{{self.possible_agents[0]!r}: action}}, got {got}")
        for agent in actions.keys() - set(self.possible_agents):
            raise UnknownName.of("agent", str(agent), self.possible_agents)
        for agent in (agent for agent in acting if agent not in actions):
            given = ", ".join(list(actions)[:6]) or "nobody"
            raise UserError(f"step needs an action of {agent}, whose turn it is, got those of {given}")
        return actions


_P = ParamSpec("_P")
_G = TypeVar("_G")
_V = TypeVar("_V")


def takes_arguments_of(game: Callable[_P, _G], **forced: object) -> Callable[[Callable[[_G], _V]], Callable[_P, _V]]:
    """Decorate a function of a game, so that it takes the arguments that the game's class takes.

    A parameter of the class is thus declared and described once. Type checkers and editors read the parameters from the
    ParamSpec, `help()` and `inspect` from `__signature__`; `**kwargs: Unpack[SomeDict]` would show only `kwargs`.

    Args:
        game: the class.
        forced: arguments that can have only one value, since both agents act at once.
    """

    def decorate(view: Callable[[_G], _V]) -> Callable[_P, _V]:
        @wraps(view)
        def make(*args: _P.args, **given: _P.kwargs) -> _V:
            for name, value in forced.items():
                if given.setdefault(name, value) != value:
                    raise UserError(f"{view.__name__}: {name} must be {value!r}, since both agents act at once")
            return view(game(*args, **given))

        own = signature(game)
        parameters = [each.replace(default=forced.get(name, each.default)) for name, each in own.parameters.items()]
        returned = signature(view).return_annotation
        make.__signature__ = own.replace(parameters=parameters, return_annotation=returned)  # type: ignore[attr-defined]
        _, blank, described = (getdoc(game.__init__) or "").partition("\n\n")
        make.__doc__ = f"{getdoc(view)}{blank}{described}"
        return make

    return decorate


class TurnByTurnEnv(OrderEnforcingWrapper, View):  # type: ignore[misc]  # PettingZoo is untyped
    """A game of two agents as PettingZoo wraps it, whose errors are the game's."""

    kind = "AEC"

    def step(self, action: Any) -> None:
        """Take the action of the agent whose turn it is; None for one that is done."""
        self.unwrapped.require_turn()
        super().step(action)

    def __str__(self) -> str:
        return str(self.env)


class SimultaneousEnv(aec_to_parallel_wrapper, View):  # type: ignore[misc]  # PettingZoo is untyped
    """A game of two agents as a parallel environment in which both act at once."""

    kind = "blind parallel"

    def __init__(self, game: AECEnv[str, Any, Any]) -> None:
        """Make a view of a game whose tester sees no program."""
        game.metadata = {**game.metadata, "is_parallelizable": True}
        super().__init__(game)

    def step(self, actions: Mapping[str, Any]) -> Any:
        """Take the actions of both agents."""
        self.unwrapped.require_turn()
        return super().step(self.unwrapped.checked_actions(actions, self.agents))


class TurnBasedParallelEnv(turn_based_aec_to_parallel_wrapper, View):  # type: ignore[misc]  # PettingZoo is untyped
    """A game of two agents as a parallel environment whose step takes one action; infos say whose, from `reset` on."""

    kind = "parallel"

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.agents: list[str] = []  # the wrapper has none before `reset`

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Start an episode; the arguments are the game's."""
        observations, infos = super().reset(seed=seed, options=options)
        return observations, self._with_turn(infos)

    def step(self, actions: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        """Take the action of the agent whose turn it is; others are ignored."""
        game = self.unwrapped
        game.require_turn()
        *results, infos = super().step(game.checked_actions(actions, [game.agent_selection]))
        return *results, self._with_turn(infos)

    def _with_turn(self, infos: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        if not self.unwrapped.has_infos:
            return {agent: {} for agent in infos}
        return {agent: info | {"active_agent": self.aec_env.agent_selection} for agent, info in infos.items()}


def role_of(agent: str) -> str:
    """Return `coder` or `tester`."""
    return agent.partition("_")[0]


class TwoAgentGame(Lifecycle, AECEnv[str, Any, Any]):  # type: ignore[misc]  # PettingZoo is untyped
    """A game of a coder and a tester, who act one after the other in the rounds of an episode."""

    agent_selection: str
    infos: dict[str, dict[str, Any]]
    last_round: JudgedRound | None
    _problem: Any
    _episode_id: str

    def __init__(self, *, tester_view: str, max_cycles: int, render_mode: str | None, infos: bool) -> None:
        """Set what every game has before its first episode.

        Raises:
            UserError: an argument has an invalid value.
        """
        super().__init__()
        self.tester_view = one_of("tester_view", tester_view, VIEWS)
        self.reported_view = self.tester_view  # its name in the tester's infos
        self.render_mode = None if render_mode is None else one_of("render_mode", render_mode, METADATA["render_modes"])
        self.max_cycles = whole_number("max_cycles", max_cycles, most=MAX_CYCLES)
        self.has_infos = of_type("infos", infos, bool)
        self.possible_agents = [CODER, TESTER]
        self.agents = []
        self.last_round = self._problem = None

    def step(self, action: Any) -> None:
        """Take the action of `agent_selection`; None only for an agent that is done.

        Raises:
            UserError: it is no action of this agent, or no agent can act.
            SandboxError: the sandbox cannot be used at all; the same action may be passed again.
        """
        self.require_turn()
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            if action is not None:
                done = f"{agent} is done, so its action must be None"
                raise UserError(f"{done}, got {action!r:.100}; reset() begins an episode")
            self._was_dead_step(None)
            return
        checked = self._checked_action(agent, action)
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        self._act(agent, checked)
        self._accumulate_rewards()
        if self.render_mode == "human":
            self.render()

    def render(self) -> str | None:
        """Render the last judged round; prints (`human`) or returns (`ansi`) it.

        Raises:
            UserError: no episode has begun, so there is no problem yet.
        """
        if self._problem is None:
            raise UserError("render: no episode has begun; call reset() first")
        if self.render_mode is None:
            _log.warning("render() without a render_mode; use env(render_mode='ansi')")
            return None
        from codea1_env.rendering import render_round  # noqa: PLC0415  rich is slow to import

        return render_round(self.last_round, self._problem, self.render_mode)

    # -- what a game is made of --

    def _checked_action(self, agent: str, action: Any) -> Any:
        """Return the action of an agent, or raise UserError; nothing has changed yet."""
        raise NotImplementedError

    def _act(self, agent: str, action: Any) -> None:
        """Act: a coder's action is followed by `_pass_to_tester`, a tester's by `_finish_round`."""
        raise NotImplementedError

    def _begin_round(self) -> None:
        """Give the turn to the coder."""
        raise NotImplementedError

    def _shown_program(self) -> str:
        """Return the program that the tester sees; empty if there is none."""
        raise NotImplementedError

    # -- an episode --

    def _begin_episode(self) -> None:
        """Let both agents live, without rewards and infos, and begin the first round."""
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {} for agent in self.agents}
        self._round = 0
        self.last_round = None
        self._begin_round()

    def _pass_to_tester(self) -> None:
        """Give the turn to the tester. It keeps the infos of the round before, whose reward reaches it on this turn."""
        self.agent_selection = TESTER
        self.infos[TESTER] |= self._turn_info(TESTER)

    def _finish_round(self, judged: JudgedRound, n_cut: Mapping[str, int] | None = None) -> None:
        """Give both agents their rewards and infos; end the episode after its last round or if they are masked.

        Args:
            judged: the round.
            n_cut: by agent, how many characters of its reply were cut.
        """
        self.last_round = judged
        self._round += 1
        by_agent = {CODER: judged.rewards.coder, TESTER: judged.rewards.testers[0]}
        is_masked, is_last = by_agent[CODER].masked, self._round >= self.max_cycles
        self.rewards = {agent: reward.value for agent, reward in by_agent.items()}
        self.terminations = dict.fromkeys(self.agents, is_last and not is_masked)
        self.truncations = dict.fromkeys(self.agents, is_masked)
        if is_last or is_masked:
            self.agent_selection = CODER
        else:
            self._begin_round()
        if not self.has_infos:
            return
        (report,) = judged.report.candidates
        info = judged_pairs_info(
            [(report, report.suites[:1])],
            {},
            tests_per_suite=self.rules.tests_per_suite,
            book_size=None if judged.book is None else judged.book.size,
            masked=False,
        )
        for agent, reward in by_agent.items():
            self.infos[agent] |= info | {"reward_parts": reward.weighted(), "masked": reward.masked}
            if n_cut and n_cut.get(agent):
                self.infos[agent]["truncated_chars"] = n_cut[agent]

    def _turn_info(self, agent: str) -> dict[str, Any]:
        if not self.has_infos:
            return {}
        return turn_info(
            self._problem,
            episode_id=self._episode_id,
            role=role_of(agent),
            round_=self._round,
            tests_per_suite=self.rules.tests_per_suite,
            program=self._shown_program(),
            tester_view=self.reported_view,
        )


@dataclass(frozen=True, slots=True)
class Episode:
    """One episode before its first step."""

    problem: Problem
    number: int
    """From 0 to 2**63 - 1, drawn at random."""
    replays: bool
    """Whether the episode replays cases of the Mistake Book."""

    @property
    def id(self) -> str:
        """The number as infos and records write it."""
        return f"{self.number:016x}"


class ProblemDraw:
    """An environment's only source of randomness: draws problems, each once before any is drawn again."""

    def __init__(self, n_problems: int) -> None:
        self._n_problems = n_problems
        self._rng: np.random.Generator | None = None
        self._queue: list[int] = []

    def seed(self, seed: int | None) -> np.random.Generator:
        """Return the random generator; a seed restarts it, and with it everything random.

        Raises:
            UserError: the seed is not a whole number, or negative.
        """
        if seed is not None or self._rng is None:
            self._rng, _ = seeding.np_random(None if seed is None else whole_number("seed", seed, least=0, most=inf))
            self._queue = []
        return self._rng

    def next_position(self) -> int:
        """Return the position of the next problem."""
        if not self._queue:
            self._queue = self.seed(None).permutation(self._n_problems).tolist()
        return self._queue.pop()


class EpisodeSource:
    """Begins an environment's episodes: their problems, and the cases of the Mistake Book that they replay."""

    def __init__(
        self,
        problems: ProblemSet,
        rules: Ruleset,
        book: MistakeBook | str | Path | None,
        options: frozenset[str] = frozenset(),
    ) -> None:
        """Open the book.

        Args:
            problems: to draw from, without replacement until each has been drawn once.
            rules: decide whether and how the book changes.
            book: a Mistake Book, or the path of one; None: a new one in memory.
            options: names of further reset options, which the environment itself reads.

        Raises:
            UserError: the book holds verdicts of another version of the judge.
        """
        self.problems, self._rules = problems, rules
        self.book = book if isinstance(book, MistakeBook) else MistakeBook(book)
        self._owns_book = not isinstance(book, MistakeBook)
        self.book.require_this_judge()
        self._options = options | {"problem_id", "problem", "replay"}
        self.draw = ProblemDraw(len(problems))

    def check_options(self, options: object) -> Mapping[str, Any]:
        """Return reset options; log unknown ones, as PettingZoo's conformance tests require.

        Raises:
            UserError: the options are not a mapping, or a key looks like a misspelled option.
        """
        if not isinstance(options, Mapping):
            raise UserError(f"reset options must be a mapping, got {type(options).__name__} ({options!r:.100})")
        for key in sorted(map(str, options.keys() - self._options)):
            if get_close_matches(key, self._options, n=1):
                raise UnknownName.of("reset option", key, self._options)
            known = ", ".join(sorted(self._options))
            _log.warning("reset: unknown option %r is ignored; known are %s", key, known)
        return options

    def begin(self, seed: int | None, options: Mapping[str, Any]) -> Episode:
        """Return the next episode.

        Raises:
            UserError: an option has an invalid value, or the rules pay for golden tests and the problem has none.
        """
        rng = self.draw.seed(seed)
        if options.get("problem") is not None:
            problem = of_type("reset option problem", options["problem"], Problem)
            require_golden_tests([problem], self._rules)
        elif options.get("problem_id") is not None:
            problem = self.problems.by_id(options["problem_id"])
        else:
            problem = self.problems[self.draw.next_position()]
        replays = of_type("reset option replay", options.get("replay", True), bool)
        return Episode(problem, int(rng.integers(2**63)), replays)

    def read_replays(self, episode: Episode) -> tuple[ValidCase, ...]:
        """Return the book's cases that the episode's next round replays."""
        if not episode.replays or self._rules.book.update is BookUpdate.OFF:
            return ()
        entries = self.book.retrieve(episode.problem.id, self._rules.book)
        return tuple(entry.to_valid_case() for entry in entries)

    def record(self, report: ProblemReport, provenance: Provenance) -> BookDelta | None:
        """Record a round in the book and return the changes; None if the rules keep no book."""
        if self._rules.book.update is BookUpdate.OFF:
            return None
        return self.book.record(report, self._rules.book, provenance)

    def close(self) -> None:
        """Close the book if it was opened here."""
        if self._owns_book:
            self.book.close()
