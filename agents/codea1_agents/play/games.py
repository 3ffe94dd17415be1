"""One game in one environment: whose turn it is, what was judged, how long it took."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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

_MAX_JUDGING = 32
"""Threads that wait for the sandbox: enough to keep the workers of a large machine busy."""


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
        self._places = threading.BoundedSemaphore(_MAX_JUDGING)
        self.lock = threading.Lock()
        """Held by whoever works in one of the environments; given up while the sandbox is waited for."""
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
        """End games which nobody wants any more at their next turn or call."""
        self._is_stopped = True

    def require_running(self) -> None:
        """Raise SandboxError after `stop`."""
        if self._is_stopped:
            raise SandboxError("the run has ended")

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        """Run all jobs; the thread holds the lock."""
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
        """End the sandbox itself."""
        self._inner.close()


@dataclass(frozen=True, slots=True)
class Table:
    """An environment, in which one game is played after the other."""

    number: int
    environment: Any
    sandbox: TimedSandbox


class Game:
    """One episode, played in one thread."""

    def __init__(self, table: Table, number: int, problem: Problem, run_seed: int) -> None:
        self._table, self._environment, self._sandbox = table.number, table.environment, table.sandbox
        self._number, self._problem = number, problem
        self._rounds: list[JudgedRound] = []
        self._unavailable: AgentUnavailable | None = None
        self._absent = ""
        self._asked_s: dict[str, float] = {}
        self._agents_s = 0.0
        self._seeds = episode_seeds(run_seed, number)
        self._where = f"episode {number} (problem {problem.id})"
        """For errors."""

    def play(self, agents: Mapping[str, GameAgent]) -> PlayedEpisode:
        """Play it with agents by the environment's names.

        Raises:
            UserError: an agent failed.
            SandboxError: the sandbox cannot be used at all, or the run has ended.
        """
        start, judged_s = time.perf_counter(), self._sandbox.spent_s
        for name, seed in ((CODER, self._seeds.coder), (TESTER, self._seeds.tester)):
            agents[name].begin(self._table, seed, self._where)
        with self._sandbox.lock:
            self._environment.reset(seed=self._seeds.environment, options={"problem_id": self._problem.id})
        while (turn := self._turn()) is not None:
            self._sandbox.require_running()
            reply = self._reply(agents, turn)
            with self._sandbox.lock:
                if isinstance(reply, str):
                    self._environment.step(reply)
                else:
                    self._environment.unwrapped.give_up(f"the {turn.info['role']} could not be asked")
            self._note_round()
        total_s = time.perf_counter() - start
        return self._played(TimeSplit(self._agents_s, self._sandbox.spent_s - judged_s, total_s))

    def _turn(self) -> Turn | None:
        """Return what the agent is to reply to whose turn it is; None: the episode is over."""
        with self._sandbox.lock:
            while self._environment.agents:
                observation, _, terminated, truncated, info = self._environment.last()
                if not (terminated or truncated):
                    return Turn(observation, info)
                self._environment.step(None)
        return None

    def _reply(self, agents: Mapping[str, GameAgent], turn: Turn) -> str | None:
        """Return the reply; None if there is none."""
        name, start = self._environment.agent_selection, time.perf_counter()
        try:
            return agents[name].reply(turn, self._table, self._where)
        except AgentUnavailable as error:
            self._unavailable, self._absent = error, name
            return None
        finally:
            self._asked_s[name] = time.perf_counter()
            self._agents_s += self._asked_s[name] - start

    def _played(self, spent: TimeSplit) -> PlayedEpisode:
        record = EpisodeRecord(
            judge_version=JUDGE_VERSION,
            episode=self._number,
            episode_id=self._rounds[-1].episode_id,
            problem_id=self._problem.id,
            seed=self._seeds.environment,
            rounds=tuple(map(RoundRecord.of, self._rounds)),
        )
        return PlayedEpisode(record, tuple(self._rounds), spent, self._unavailable, self._absent, self._asked_s)

    def _note_round(self) -> None:
        judged = self._environment.unwrapped.last_round
        if judged is not None and (not self._rounds or judged is not self._rounds[-1]):
            self._rounds.append(judged)
