"""Plays one game in one environment, and measures the time it takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from codea1_agents.play.game_agents import GameAgent
from codea1_env.code_a1_v0 import CODER, TESTER
from codea1_env.errors import AgentUnavailable, SandboxError
from codea1_env.facts.judge_version import JUDGE_VERSION
from codea1_env.judging.judged_round import JudgedRound
from codea1_env.problems import Problem
from codea1_env.rounds.rounds import Turn
from codea1_env.runs.records import EpisodeRecord, RoundRecord
from codea1_env.sandbox import Guarantee, Job, JobReport, Sandbox

_T = TypeVar("_T")

_MAX_JUDGING = 32
"""Most threads that call the sandbox at once: enough to keep the workers of a large machine busy."""


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
    """Why the last round is masked, if an agent was unavailable."""
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

    @classmethod
    def of_run(cls, run_seed: int) -> EpisodeSeeds:
        """Return the seeds for agents that are reset once per run; the environment's seed is not used."""
        return cls(*(_descendant(run_seed, key) for key in range(3)))


def episode_seeds(run_seed: int, episode: int) -> EpisodeSeeds:
    """Return the seeds of an episode; they do not depend on other episodes."""
    return EpisodeSeeds(*(_descendant(run_seed, episode, key) for key in range(3)))


def _descendant(run_seed: int, *key: int) -> int:
    sequence = np.random.SeedSequence(run_seed, spawn_key=key)
    return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(11))


class TimedSandbox:
    """The sandbox as the environments see it. Measures each thread's waiting time, and can be stopped for all games."""

    def __init__(self, inner: Sandbox) -> None:
        self._inner = inner
        self._watch = threading.local()
        self._places = threading.BoundedSemaphore(_MAX_JUDGING)
        self.lock = threading.Lock()
        """A thread holds it while it works in an environment, and releases it while it waits for the sandbox."""
        self._is_stopped = False

    @property
    def name(self) -> str:
        """The sandbox's name."""
        return self._inner.name

    @property
    def guarantee(self) -> Guarantee:
        """The sandbox's guarantee."""
        return self._inner.guarantee

    @property
    def spent_s(self) -> float:
        """Seconds that the current thread has waited for the sandbox so far."""
        return float(getattr(self._watch, "spent_s", 0.0))

    def stop(self) -> None:
        """Make every game fail at its next turn or sandbox call."""
        self._is_stopped = True

    def require_running(self) -> None:
        """Raise SandboxError after `stop`."""
        if self._is_stopped:
            raise SandboxError("the run has ended")

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        """Run all jobs. The calling thread must hold the lock; it is released meanwhile."""
        self.require_running()
        self.lock.release()
        try:
            with self._places:
                start = time.perf_counter()
                try:
                    return self._inner.run(jobs)
                finally:
                    self._watch.spent_s = self.spent_s + time.perf_counter() - start
        finally:
            self.lock.acquire()

    def close(self) -> None:
        """Close the sandbox itself."""
        self._inner.close()


@dataclass(frozen=True, slots=True)
class EnvSlot:
    """One environment, which plays one game after the other."""

    number: int
    environment: Any
    sandbox: TimedSandbox


class Game:
    """One episode, played in one thread."""

    def __init__(self, slot: EnvSlot, number: int, problem: Problem, run_seed: int) -> None:
        self._table, self._environment, self._sandbox = slot.number, slot.environment, slot.sandbox
        self._number, self._problem = number, problem
        self._rounds: list[JudgedRound] = []
        self._unavailable: AgentUnavailable | None = None
        self._unavailable_agent = ""
        self._last_call_s: dict[str, float] = {}
        self._agents_s = 0.0
        self._seeds = episode_seeds(run_seed, number)
        self._where = f"episode {number} (problem {problem.id})"
        """Names the game in error messages."""

    def play(self, agents: Mapping[str, GameAgent]) -> PlayedEpisode:
        """Play the episode.

        Args:
            agents: by the environment's names, such as `coder_0`.

        Raises:
            UserError: an agent failed.
            SandboxError: the sandbox cannot be used at all, or the run has ended.
        """
        start, judged_s = time.perf_counter(), self._sandbox.spent_s
        for name, seed in ((CODER, self._seeds.coder), (TESTER, self._seeds.tester)):
            self._called(name, agents[name].begin, self._table, seed, self._where)
        with self._sandbox.lock:
            self._environment.reset(seed=self._seeds.environment, options={"problem_id": self._problem.id})
        while (turn := self._turn()) is not None:
            self._sandbox.require_running()
            name, reply = self._environment.agent_selection, None
            if self._unavailable is None:
                reply = self._called(name, agents[name].reply, turn, self._table, self._where)
            with self._sandbox.lock:
                if isinstance(reply, str):
                    self._environment.step(reply)
                else:
                    role = self._unavailable_agent.partition("_")[0]
                    self._environment.unwrapped.give_up(f"the {role} was unavailable")
            self._note_round()
        total_s = time.perf_counter() - start
        return self._played(TimeSplit(self._agents_s, self._sandbox.spent_s - judged_s, total_s))

    def _turn(self) -> Turn | None:
        """Return the turn of the agent that acts next; None if the episode is over."""
        with self._sandbox.lock:
            while self._environment.agents:
                observation, _, terminated, truncated, info = self._environment.last()
                if not (terminated or truncated):
                    return Turn(observation, info)
                self._environment.step(None)
        return None

    def _called(self, name: str, function: Callable[..., _T], *arguments: object) -> _T | None:
        """Return the result of an agent's call; None if the agent is unavailable."""
        start = time.perf_counter()
        try:
            return function(*arguments)
        except AgentUnavailable as error:
            self._unavailable, self._unavailable_agent = error, name
            return None
        finally:
            self._last_call_s[name] = time.perf_counter()
            self._agents_s += self._last_call_s[name] - start

    def _played(self, spent: TimeSplit) -> PlayedEpisode:
        record = EpisodeRecord(
            judge_version=JUDGE_VERSION,
            episode=self._number,
            episode_id=self._rounds[-1].episode_id,
            problem_id=self._problem.id,
            seed=self._seeds.environment,
            rounds=tuple(map(RoundRecord.of, self._rounds)),
        )
        return PlayedEpisode(
            record, tuple(self._rounds), spent, self._unavailable, self._unavailable_agent, self._last_call_s
        )

    def _note_round(self) -> None:
        judged = self._environment.unwrapped.last_round
        if judged is not None and (not self._rounds or judged is not self._rounds[-1]):
            self._rounds.append(judged)
