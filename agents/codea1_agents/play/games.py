"""Facts about the games of a run: settings, seeds, finished episodes, the order in which they are handed on. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf

import numpy as np

from codea1_env.agent.threads import REPLY_TIMEOUT_S
from codea1_env.errors import AgentUnavailable, UserError, of_type, whole_number
from codea1_env.judging.judged_round import JudgedRound
from codea1_env.rules.ruleset import Ruleset
from codea1_env.runs.records import EpisodeRecord
from codea1_env.sandbox import Limits

PATIENCE = 8
"""Number of games in a row without a reply that ends a run."""


MAX_CONCURRENCY = 4096
"""Each game in progress has an environment, and a copy of an agent that has only `act`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """The settings of a run. Episode k plays problem k modulo their number."""

    rules: Ruleset
    episodes: int = 10
    """Number of episodes of the whole run, at least 1."""
    rounds: int = 1
    """Rounds per episode, at least 1."""
    seed: int = 0
    """Not negative."""
    tester_view: str = "white_box"
    """`white_box` or `black_box`."""
    limits: Limits | None = None
    """Bounds per call of a program."""
    concurrency: int = 1
    """Most games in progress, from 1 to `MAX_CONCURRENCY`; never two of one problem."""
    run_id: str = ""
    """Stored with the players' names in new entries of the book."""
    reply_timeout_s: float | None = REPLY_TIMEOUT_S
    """Seconds after which a call of an agent is given up and its game masked, times the length of a batch; None: never.
    With a limit, agents are called in threads of their own, except a person's."""

    def __post_init__(self) -> None:
        """Raise UserError if a number is of another type or out of its range."""
        of_type("rules", self.rules, Ruleset)
        whole_number("episodes", self.episodes, most=inf)
        whole_number("seed", self.seed, least=0, most=inf)
        whole_number("concurrency", self.concurrency, most=MAX_CONCURRENCY)
        limit_s: object = self.reply_timeout_s
        if limit_s is not None and not (isinstance(limit_s, int | float) and limit_s > 0):  # also catches nan
            raise UserError(f"reply_timeout_s must be a number above 0 or None, got {limit_s!r}")


@dataclass(frozen=True, slots=True)
class TimeSplit:
    """Wall-clock seconds; never part of a record. The seconds of concurrent games overlap."""

    agents_s: float = 0.0
    """Spent waiting for agents."""
    judging_s: float = 0.0
    """Spent waiting for the sandbox."""
    total_s: float = 0.0

    @property
    def rest_s(self) -> float:
        """Everything else: reading replies, scoring, the book, waiting for other games."""
        return self.total_s - self.agents_s - self.judging_s

    def __add__(self, other: TimeSplit) -> TimeSplit:
        return TimeSplit(self.agents_s + other.agents_s, self.judging_s + other.judging_s, self.total_s + other.total_s)


@dataclass(frozen=True, slots=True)
class PlayedEpisode:
    """One finished episode."""

    record: EpisodeRecord
    rounds: tuple[JudgedRound, ...]
    """Empty for an episode that was played before this run was resumed."""
    time: TimeSplit
    unavailable: AgentUnavailable | None = None
    """Reason for which the last round is masked, if an agent was unavailable."""
    unavailable_agent: str = ""
    """The environment's name of that agent, such as `coder_0`; empty if none was unavailable."""
    last_call_s: Mapping[str, float] = field(default_factory=dict)
    """By the environment's name of an agent: when its last call ended, in seconds of a monotonic clock."""


@dataclass(frozen=True, slots=True)
class EpisodeSeeds:
    """Independent seeds of one episode. Each fits into a double, so every reader of the record gets the exact seed."""

    environment: int
    coder: int
    tester: int


def episode_seeds(run_seed: int, *episode: int) -> EpisodeSeeds:
    """Return the seeds of an episode, which do not depend on other episodes.

    Without an episode, return the seeds for agents that are reset once per run.
    """
    sequences = (np.random.SeedSequence(run_seed, spawn_key=(*episode, part)) for part in range(3))
    return EpisodeSeeds(*(int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(11)) for sequence in sequences))


class FinishedGames:
    """The episodes of a run that have finished; hands them on in the order of their numbers.

    A game with an unavailable agent is handed on only after a later game shows that the run goes on. So the games of an
    outage that stops the run are never handed on, and a resumed run plays them again.
    """

    def __init__(
        self,
        on_episode: Callable[[PlayedEpisode], object],
        on_early: Callable[[PlayedEpisode], object] = lambda _: None,
        *,
        start_at: int = 0,
        known: Mapping[int, EpisodeRecord] | None = None,
    ) -> None:
        """Expect the episodes of a run. What a callback raises ends the run.

        Args:
            on_episode: called for each episode, in the order of their numbers; without concurrency, before the next one
                begins.
            on_early: called at once for an episode that finishes before an earlier one.
            start_at: number of the first episode, at least 0.
            known: episodes from `start_at` on that were played before, by number; they are handed on at their place.

        Raises:
            UserError: `start_at` is negative.
        """
        if start_at < 0:
            raise UserError(f"start_at must be at least 0, got {start_at}")
        self.start_at, self.known = start_at, frozenset(known or {})
        self._place, self._on_episode, self._on_early = start_at, on_episode, on_early
        self._waiting = {number: PlayedEpisode(record, (), TimeSplit()) for number, record in (known or {}).items()}
        self._held: list[PlayedEpisode] = []
        self._begun: dict[int, tuple[str, float]] = {}
        self._were_available = start_at > 0 or bool(known)

    def hand_on(self) -> None:
        """Hand on the next episodes as far as they are known or have finished."""
        while self._place in self._waiting:
            self._on_episode(self._waiting.pop(self._place))
            self._place += 1

    def begin(self, number: int, problem_id: str, now: float) -> None:
        """Note that a game begins."""
        self._begun[number] = problem_id, now

    def oldest(self) -> tuple[str, float] | None:
        """Return the problem of the game that has been in progress for longest, and when it began; None without one."""
        return next(iter(list(self._begun.values())), None)

    def add(self, game: PlayedEpisode) -> None:
        """Take a game that has just finished.

        Raises:
            AgentUnavailable: `PATIENCE` games in a row had no reply.
        """
        self._begun.pop(game.record.episode, None)
        if game.unavailable is not None:
            self._held.append(game)
            if len(self._held) >= PATIENCE:
                raise self._outage("in a row")
            return
        self._were_available = True
        past = [held for held in self._held if _is_past(held, game)]
        self._held = [held for held in self._held if not _is_past(held, game)]
        for past_game in (*past, game):
            self._put_in_order(past_game)

    def end(self) -> None:
        """Hand on the games that are still held, after the last game.

        Raises:
            AgentUnavailable: no agent replied in the whole run.
        """
        if self._held and not self._were_available:
            raise self._outage("of the run")
        for held in self._held:
            self._put_in_order(held)

    def _put_in_order(self, game: PlayedEpisode) -> None:
        self._waiting[game.record.episode] = game
        if game.record.episode != self._place:
            self._on_early(game)
        self.hand_on()

    def _outage(self, which: str) -> AgentUnavailable:
        n_games = f"{len(self._held)} games {which}" if len(self._held) > 1 else "the only game"
        return AgentUnavailable(f"no agent replied in {n_games}, so the run stops: {self._held[-1].unavailable}")


def _is_past(masked: PlayedEpisode, game: PlayedEpisode) -> bool:
    """Whether the agent that was unavailable in `masked` has replied in `game` since, or both play the same problem.

    A later game of the same problem depends on the outcome of the earlier one.
    """
    since = game.last_call_s.get(masked.unavailable_agent, 0.0) > masked.last_call_s[masked.unavailable_agent]
    return since or game.record.problem_id == masked.record.problem_id
