"""One game at one table: whose turn it is, what was judged, how long it took. Who asks the agents: `runner`."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from codea1_agents.parsing_lock import ParsingLock
from codea1_env.agent import Info, Observation
from codea1_env.errors import AgentUnavailable, SandboxError
from codea1_env.judge_version import JUDGE_VERSION
from codea1_env.judged_round import JudgedRound
from codea1_env.problems import Problem
from codea1_env.runs.records import EpisodeRecord, RoundRecord
from codea1_env.sandbox import Guarantee, Job, JobReport, Sandbox


@dataclass(frozen=True, slots=True)
class TimeSplit:
    """Wall-clock seconds; never part of a record. Those of games played at the same time overlap."""

    agents_s: float = 0.0
    """Spent waiting for replies."""
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
    """Empty for an episode that was played before and is only handed on."""
    time: TimeSplit
    unavailable: AgentUnavailable | None = None
    """Why its last round is masked, if that is because an agent could not be asked."""
    absent: str = ""
    """Which one: the environment's name of its seat."""
    asked_s: Mapping[str, float] = field(default_factory=dict)
    """By seat, when it last replied or could not be asked, by a clock that only goes on."""


@dataclass(frozen=True, slots=True)
class EpisodeSeeds:
    """Independent seeds of one episode; each fits into a double, so that any reader of the record keeps it exact."""

    environment: int
    coder: int
    tester: int

    @classmethod
    def of_run(cls, run_seed: int) -> EpisodeSeeds:
        """Return the seeds for agents that are reset once per run; that of the environment is not used."""
        return cls(*(_descendant(run_seed, key) for key in range(3)))


def episode_seeds(run_seed: int, episode: int) -> EpisodeSeeds:
    """Return the seeds of an episode, whichever episodes were played before it."""
    return EpisodeSeeds(*(_descendant(run_seed, episode, key) for key in range(3)))


def _descendant(run_seed: int, *key: int) -> int:
    sequence = np.random.SeedSequence(run_seed, spawn_key=key)
    return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(11))


class TimedSandbox:
    """The environments' view of the sandbox: the same, with a stop-watch for each thread and a switch for all."""

    def __init__(self, inner: Sandbox) -> None:
        self._inner = inner
        self._watch = threading.local()
        self.parsing = ParsingLock()
        """Held by whoever works at these tables; given up while it waits for the sandbox."""
        self._is_stopped = False

    @property
    def name(self) -> str:
        """That of the sandbox."""
        return self._inner.name

    @property
    def guarantee(self) -> Guarantee:
        """That of the sandbox."""
        return self._inner.guarantee

    @property
    def spent_s(self) -> float:
        """Seconds that the present thread has waited so far."""
        return float(getattr(self._watch, "spent_s", 0.0))

    def stop(self) -> None:
        """Refuse whatever is asked from now on, so that games which nobody wants any more end soon."""
        self._is_stopped = True

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        """Run all jobs."""
        if self._is_stopped:
            raise SandboxError("the run has ended")
        start = time.perf_counter()
        try:
            with self.parsing.released():
                return self._inner.run(jobs)
        finally:
            self._watch.spent_s = self.spent_s + time.perf_counter() - start

    def close(self) -> None:
        """End the sandbox itself."""
        self._inner.close()


@dataclass(frozen=True, slots=True)
class Table:
    """Where one game is played after the other."""

    number: int
    environment: Any
    sandbox: TimedSandbox


@dataclass(frozen=True, slots=True)
class Turn:
    """Somebody is to reply."""

    agent: str
    """The environment's name of the seat."""
    observation: Observation
    info: Info


class Game:
    """One episode being played. Not thread-safe, but each step may be made in another thread."""

    def __init__(self, table: Table, number: int, problem: Problem, run_seed: int) -> None:
        self._environment, self._sandbox = table.environment, table.sandbox
        self._number, self._problem = number, problem
        self._rounds: list[JudgedRound] = []
        self._unavailable: AgentUnavailable | None = None
        self._absent = ""
        self._asked_s: dict[str, float] = {}
        self._agents_s = self._judging_s = 0.0
        self._start = self._handed_over = time.perf_counter()
        self.table = table.number
        self.seeds = episode_seeds(run_seed, number)
        self.where = f"episode {number} (problem {problem.id})"
        """For errors."""

    def begin(self) -> None:
        """Set up the episode."""
        self._environment.reset(seed=self.seeds.environment, options={"problem_id": self._problem.id})

    def turn(self) -> Turn | None:
        """Return whose turn it is; None: the episode is over. The time until `take` or `give_up` is the agent's."""
        while self._environment.agents:
            observation, _, terminated, truncated, info = self._environment.last()
            if not (terminated or truncated):
                self._handed_over = time.perf_counter()
                return Turn(self._environment.agent_selection, observation, info)
            self._environment.step(None)
        return None

    def answered(self, turn: Turn) -> None:
        """Stop the agent's clock."""
        now = self._asked_s[turn.agent] = time.perf_counter()
        self._agents_s += now - self._handed_over

    def take(self, reply: str) -> None:
        """Put in the reply; waits for the sandbox.

        Raises:
            SandboxError: it cannot be used at all.
        """
        before = self._sandbox.spent_s
        try:
            with self._sandbox.parsing.held():
                self._environment.step(reply)
        finally:
            self._judging_s += self._sandbox.spent_s - before
        self._note_round()

    def give_up(self, turn: Turn, error: AgentUnavailable) -> None:
        """End the episode, masked, since this turn's agent could not be asked."""
        self._unavailable, self._absent = error, turn.agent
        self._environment.unwrapped.give_up(f"the {turn.info['role']} could not be asked")
        self._note_round()

    def played(self) -> PlayedEpisode:
        """Return the finished episode."""
        record = EpisodeRecord(
            judge_version=JUDGE_VERSION,
            episode=self._number,
            episode_id=self._rounds[-1].episode_id,
            problem_id=self._problem.id,
            seed=self.seeds.environment,
            rounds=tuple(map(RoundRecord.of, self._rounds)),
        )
        spent = TimeSplit(self._agents_s, self._judging_s, time.perf_counter() - self._start)
        return PlayedEpisode(record, tuple(self._rounds), spent, self._unavailable, self._absent, self._asked_s)

    def _note_round(self) -> None:
        judged = self._environment.unwrapped.last_round
        if judged is not None and (not self._rounds or judged is not self._rounds[-1]):
            self._rounds.append(judged)
