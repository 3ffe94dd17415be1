"""Rollouts of whole trees: a problem, N candidates for it, M suites for each or for all of them, judged together.

While the sandbox checks or judges some problems, the next ones are already generated.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from codea1_agents.train.grpo.group_envs import GroupEnvs
from codea1_agents.train.grpo.grouping import Advantages, group_advantages, top_variance
from codea1_agents.train.grpo.players import Answer, Player
from codea1_env.facts.verdicts import ProblemReport, ValidCase
from codea1_env.group_vector import GroupVector
from codea1_env.rounds.rounds import Turn
from codea1_env.rounds.trees import Tree as Opened
from codea1_env.rules.reward_parts import CandidateRewards


@dataclass(frozen=True, slots=True)
class Task:
    """One problem to roll out."""

    number: int
    """Of the task in the whole training: all randomness in its tree descends from it."""
    problem_id: str
    replayed: tuple[ValidCase, ...] = ()
    """Cases of the Mistake Book."""


@dataclass(frozen=True, slots=True)
class Tree:
    """One problem's rollouts: N candidates, and G groups of M suites, one for each candidate or one for all."""

    task: Task
    candidates: tuple[Answer, ...]
    """(N,)"""
    suites: tuple[tuple[Answer, ...], ...]
    """(G, M); (G, 0) where a candidate is invalid or masked, so that no tester was asked."""
    report: ProblemReport | None
    """None if the sandbox failed: everything is masked."""
    book_report: ProblemReport | None
    """What the Mistake Book's owner records; None: our own failure has hidden evidence."""
    rewards: tuple[CandidateRewards, ...]
    """(N,), what the rules pay, with parts; empty if the sandbox failed."""
    coder: Advantages
    """(N,)"""
    tester: Advantages
    """(G, M)"""
    kept: NDArray[np.bool_]
    """(G,): which groups of suites are learnt from."""
    coder_rewards: NDArray[np.float64]
    """(N,), what the environment has paid; nan where masked."""
    tester_rewards: NDArray[np.float64]
    """(G, M), likewise; nan where masked or not asked."""


@dataclass(slots=True)
class RolloutTimes:
    """Where the time of rollouts goes, in seconds; the two overlap."""

    generate_s: float = 0.0
    """Agents at work."""
    judge_s: float = 0.0
    """The sandbox at work."""


class TreeRoller:
    """Rolls out trees: lets players act in group environments.

    Args:
        envs: where everything is played.
        players: who answers, by role.
        seed: of the run.
    """

    def __init__(self, envs: GroupEnvs, players: Mapping[str, Player], *, seed: int = 0) -> None:
        self._envs, self._players, self._seed = envs, players, seed
        self.shape = envs.shape
        self.times = RolloutTimes()
        """Since whoever reads them last replaced them."""

    def roll(self, tasks: Sequence[Task]) -> list[Tree]:
        """Return one tree per task, in order.

        What the sandbox itself fails at is masked, never scored.
        """
        parts = self._parts(tasks)
        for part in parts:
            part.write_programs()
        for part in parts:
            part.write_suites()
        trees = [tree for part in parts for tree in part.trees()]
        self.times.judge_s += sum(part.vector.judge_s for part in parts)
        return trees

    def coder_turns(self, tasks: Sequence[Task]) -> list[Turn]:
        """Return the turns of all coders, task by task, for who needs nothing else."""
        return [turn for part in self._parts(tasks) for turn in part.vector.turns()]

    def ask(self, role: str, turns: Sequence[Turn]) -> list[Answer]:
        """Return one answer per turn."""
        begun = time.perf_counter()
        answers = self._players[role].answer(turns) if turns else []
        self.times.generate_s += time.perf_counter() - begun
        return answers

    def opened(self, task: Task) -> Opened:
        """Return what is played about a task."""
        shape = self.shape
        return Opened(
            self._envs.referee.problems.by_id(task.problem_id),
            shape.n_candidates,
            shape.n_suites,
            shape.suites_per,
            task.replayed,
            name=f"{task.number:08x}",
            seed=(self._seed, task.number),
        )

    def _parts(self, tasks: Sequence[Task]) -> list[_Part]:
        size = self.shape.problems_at_once
        parts = [tasks[start : start + size] for start in range(0, len(tasks), size)]
        return [_Part(self, *each) for each in zip(parts, self._envs.vectors(len(parts)), strict=True)]


class _Part:
    """Some problems that are generated and judged together: one vector's episodes."""

    def __init__(self, roller: TreeRoller, tasks: Sequence[Task], vector: GroupVector) -> None:
        self.vector, self._roller, self._tasks = vector, roller, tasks
        trees = [roller.opened(task) for task in tasks]
        vector.reset(options=[{"tree": tree} for tree in trees])
        self._programs: list[list[Answer]] = [[] for _ in trees]
        self._suites: list[list[list[Answer]]] = [[[] for _ in range(tree.n_groups)] for tree in trees]

    def write_programs(self) -> None:
        for turn, answer in self._acted("coder"):
            self._programs[turn.tree].append(answer)

    def write_suites(self) -> None:
        if not self._roller.shape.n_suites:
            return
        self.vector.recv()
        for turn, answer in self._acted("tester"):
            self._suites[turn.tree][turn.candidate].append(answer)

    def _acted(self, role: str) -> list[tuple[Turn, Answer]]:
        turns = self.vector.turns()
        answers = self._roller.ask(role, turns)
        self.vector.send(self.vector.actions([answer.reply for answer in answers]))
        return list(zip(turns, answers, strict=True))

    def trees(self) -> Iterator[Tree]:
        self.vector.recv()
        n_kept, keeps_flat = self._roller.shape.n_kept, self._roller.shape.keep_flat_groups
        for place, (task, judged) in enumerate(zip(self._tasks, self.vector.trees(), strict=True)):
            of_coder, of_tester = self.vector.coder_rewards(place), self.vector.tester_rewards(place)
            yield Tree(
                task=task,
                candidates=tuple(self._programs[place]),
                suites=tuple(map(tuple, self._suites[place])),
                report=judged.report,
                book_report=judged.book_report,
                rewards=judged.rewards,
                coder=group_advantages(of_coder, keeps_flat=keeps_flat),
                tester=group_advantages(of_tester, keeps_flat=keeps_flat),
                kept=top_variance(of_tester, n_kept, keeps_flat=keeps_flat),
                coder_rewards=of_coder,
                tester_rewards=of_tester,
            )
