"""Plays games between two agents through the environment, one after the other.

Everything random in episode k descends from the run's seed and k alone, so an episode is the same whether the run was
played in one go or resumed. What an earlier episode left in the Mistake Book is part of the game, so a run that starts
at `start_at` must be given the book as it was then.
"""

from __future__ import annotations

import inspect
import time
import traceback
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from codea1_agents.summary import Summary, Tally
from codea1_env import code_a1_v0
from codea1_env.agent import Agent, AgentContext, AgentSpec, Info, Observation, agent_name, load_agent
from codea1_env.book.store import MistakeBook
from codea1_env.errors import CodeA1Error, UserError
from codea1_env.problems import Problem, ProblemSet, ProblemSource, load_problems
from codea1_env.rounds import JudgedRound
from codea1_env.rules.mistake_book import Provenance
from codea1_env.rules.ruleset import Ruleset, preset
from codea1_env.runs.records import EpisodeRecord, RoundRecord
from codea1_env.sandbox import Guarantee, Job, JobReport, Limits, Sandbox, load_sandbox

__all__ = [
    "EpisodeSeeds",
    "PlayedEpisode",
    "Players",
    "TimeSplit",
    "episode_seeds",
    "iter_games",
    "load_players",
    "play",
]


@dataclass(frozen=True, slots=True)
class TimeSplit:
    """Wall-clock seconds; never part of a record."""

    agents_s: float = 0.0
    judging_s: float = 0.0
    """Spent waiting for the sandbox."""
    total_s: float = 0.0

    @property
    def rest_s(self) -> float:
        """Everything else: reading replies, scoring, the book, this loop."""
        return self.total_s - self.agents_s - self.judging_s

    def __add__(self, other: TimeSplit) -> TimeSplit:
        return TimeSplit(self.agents_s + other.agents_s, self.judging_s + other.judging_s, self.total_s + other.total_s)


@dataclass(frozen=True, slots=True)
class PlayedEpisode:
    """One finished episode."""

    record: EpisodeRecord
    rounds: tuple[JudgedRound, ...]
    time: TimeSplit


@dataclass(frozen=True, slots=True)
class EpisodeSeeds:
    """Independent seeds of one episode; each fits into a double, so that any reader of the record keeps it exact."""

    environment: int
    coder: int
    tester: int


def episode_seeds(run_seed: int, episode: int) -> EpisodeSeeds:
    """Return the seeds of an episode, whichever episodes were played before it."""

    def descendant(key: int) -> int:
        sequence = np.random.SeedSequence(run_seed, spawn_key=(episode, key))
        return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(11))

    return EpisodeSeeds(descendant(0), descendant(1), descendant(2))


@dataclass(frozen=True, slots=True)
class Players:
    """The two agents of a run, with the names that errors call them by."""

    coder: Agent
    tester: Agent
    coder_name: str
    tester_name: str


def load_players(coder: AgentSpec, tester: AgentSpec, context: AgentContext) -> Players:
    """Return the agents that two specifications name or are.

    Raises:
        UserError: nothing of that name, it cannot be made, or it plays the other role.
    """
    agents = load_agent(coder, context, role="coder"), load_agent(tester, context, role="tester")
    return Players(*agents, *map(agent_name, (coder, tester), agents))


def play(
    problems: ProblemSource,
    coder: AgentSpec,
    tester: AgentSpec,
    *,
    rules: Ruleset | str = "fixed",
    episodes: int = 10,
    seed: int = 0,
    sandbox: Sandbox | str = "local",
    on_episode: Callable[[PlayedEpisode], object] | None = None,
    **options: Any,
) -> Summary:
    """Play and return the figures of the episodes played.

    Args:
        problems: a source that `load_problems` takes.
        coder: an agent, a function `observation -> str`, or a name.
        tester: likewise.
        rules: a ruleset or a preset's name.
        episodes: number of episodes of the whole run.
        seed: of the run, and of the intervals.
        sandbox: a back end or its name.
        on_episode: called after each episode, before the next one begins.
        options: the other arguments of `iter_games`: rounds, tester_view, book, limits, start_at, run_id.

    Raises:
        UserError: something asked for does not exist, or an agent failed.
        SandboxError: the sandbox cannot be used at all.
    """
    ruleset = preset(rules) if isinstance(rules, str) else rules
    loaded, backend = load_problems(problems), load_sandbox(sandbox)
    players = load_players(coder, tester, AgentContext(loaded, backend, seed))
    tally = Tally(tests_per_suite=ruleset.tests_per_suite)
    games = iter_games(loaded, players, rules=ruleset, episodes=episodes, seed=seed, sandbox=backend, **options)
    for game in games:
        tally.add(game.record)
        if on_episode is not None:
            on_episode(game)
    return tally.summary(seed=seed)


def iter_games(
    problems: ProblemSet,
    players: Players,
    *,
    rules: Ruleset,
    sandbox: Sandbox,
    episodes: int = 10,
    rounds: int = 1,
    seed: int = 0,
    tester_view: str = "white_box",
    book: MistakeBook | None = None,
    limits: Limits | None = None,
    start_at: int = 0,
    run_id: str = "",
) -> Generator[PlayedEpisode, None, None]:
    """Yield finished episodes `start_at` to `episodes - 1`; episode k plays problem k of the set, cycling.

    Args:
        problems: what is played.
        players: who plays; their `close`, where they have one, is called at the end.
        rules: of the game.
        sandbox: where programs run.
        episodes: number of episodes of the whole run, at least 1.
        rounds: rounds per episode, at least 1.
        seed: of the run, not negative.
        tester_view: `white_box` or `black_box`.
        book: the Mistake Book, as episode `start_at` finds it; None: a new one in memory.
        limits: bounds per call of a program.
        start_at: first episode to play.
        run_id: names the run in new entries of the book, beside the players' names.

    Raises:
        UserError: an argument out of range, or an agent failed; what was yielded before stands.
        SandboxError: the sandbox cannot be used at all.
    """
    for name, value, least in (("episodes", episodes, 1), ("seed", seed, 0), ("start_at", start_at, 0)):
        if value < least:
            raise UserError(f"{name} must be at least {least}, not {value}")
    timed = _TimedSandbox(sandbox)
    environment = code_a1_v0.env(
        problems=problems,
        rules=rules,
        tester_view=tester_view,
        max_cycles=rounds,
        book=book,
        sandbox=timed,
        limits=limits,
        provenance=Provenance(run=run_id, coder=players.coder_name, tester=players.tester_name),
    )
    seats = {
        code_a1_v0.CODER: _Seat(f"coder {players.coder_name}", players.coder),
        code_a1_v0.TESTER: _Seat(f"tester {players.tester_name}", players.tester),
    }
    try:
        for number in range(start_at, episodes):
            yield _Game(environment, seats, timed).play(number, problems[number % len(problems)], seed)
    finally:
        environment.close()
        for seat in seats.values():
            seat.close()


@dataclass(slots=True)
class _Seat:
    """One agent and who to blame for what it does; whatever it raises becomes one sentence."""

    name: str
    agent: Agent
    spent_s: float = 0.0

    def reset(self, seed: int, where: str) -> None:
        reset = getattr(self.agent, "reset", None)
        if callable(reset):
            self._call(reset, (seed,), where)

    def act(self, observation: Observation, info: Info, where: str) -> str:
        reply = self._call(self.agent.act, (observation, info), where)
        if inspect.iscoroutine(reply):
            reply.close()  # or Python would warn that nobody awaited it
        if not isinstance(reply, str):
            raise UserError(f"{self.name} returned {type(reply).__name__} in {where}, expected text (str)")
        return reply

    def close(self) -> None:
        close = getattr(self.agent, "close", None)
        if callable(close):
            self._call(close, (), "close()")

    def _call(self, function: Callable[..., Any], arguments: tuple[Any, ...], where: str) -> Any:
        start = time.perf_counter()
        try:
            return function(*arguments)
        except CodeA1Error:
            raise
        except Exception as error:  # the boundary to agents, which are anyone's code
            raise UserError(f"{self.name} failed in {where}: {_blame(error)}") from error
        except SystemExit as error:  # its end must not be taken for ours, nor its exit code for the command line's
            raise UserError(f"{self.name} called sys.exit({error.code!r}) in {where}") from error
        finally:
            self.spent_s += time.perf_counter() - start


def _blame(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    said = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}{f': {said}' if said else ''} ({frame.filename}:{frame.lineno})"


@dataclass(slots=True)
class _Game:
    """One episode being played."""

    environment: Any
    seats: dict[str, _Seat]
    sandbox: _TimedSandbox
    rounds: list[JudgedRound] = field(default_factory=list)

    def play(self, number: int, problem: Problem, run_seed: int) -> PlayedEpisode:
        start, agents_before, judging_before = time.perf_counter(), self._agents_s(), self.sandbox.spent_s
        seeds = episode_seeds(run_seed, number)
        where = f"episode {number} (problem {problem.id})"
        self.seats[code_a1_v0.CODER].reset(seeds.coder, where)
        self.seats[code_a1_v0.TESTER].reset(seeds.tester, where)
        self.environment.reset(seed=seeds.environment, options={"problem_id": problem.id})
        for name in self.environment.agent_iter():
            self._turn(name, where)
        record = EpisodeRecord(
            episode=number,
            episode_id=self.rounds[-1].episode_id,
            problem_id=problem.id,
            seed=seeds.environment,
            rounds=tuple(map(RoundRecord.of, self.rounds)),
        )
        judging_s = self.sandbox.spent_s - judging_before
        spent = TimeSplit(self._agents_s() - agents_before, judging_s, time.perf_counter() - start)
        return PlayedEpisode(record, tuple(self.rounds), spent)

    def _turn(self, name: str, where: str) -> None:
        observation, _, terminated, truncated, info = self.environment.last()
        if terminated or truncated:
            self.environment.step(None)
            return
        self.environment.step(self.seats[name].act(observation, info, where))
        judged = self.environment.unwrapped.last_round
        if judged is not None and (not self.rounds or judged is not self.rounds[-1]):
            self.rounds.append(judged)

    def _agents_s(self) -> float:
        return sum(seat.spent_s for seat in self.seats.values())


class _TimedSandbox:
    """The environment's view of the sandbox: the same, with a stop-watch."""

    def __init__(self, inner: Sandbox) -> None:
        self._inner = inner
        self.spent_s = 0.0

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def guarantee(self) -> Guarantee:
        return self._inner.guarantee

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        start = time.perf_counter()
        try:
            return self._inner.run(jobs)
        finally:
            self.spent_s += time.perf_counter() - start

    def close(self) -> None:
        self._inner.close()
