"""Rollouts of whole trees: a problem, N candidates for it, M suites for each or for all of them, judged together.

While the sandbox checks or judges some problems, the next ones are already generated.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from codea1_agents.grpo.grouping import Advantages, group_advantages, top_variance
from codea1_agents.grpo.players import Answer, Player
from codea1_env.referee import Referee
from codea1_env.rounds import RoundOptions, Rounds, Turn
from codea1_env.rules.rewards import CandidateRewards
from codea1_env.trees import JudgedTree, SuitesPer
from codea1_env.trees import Tree as Opened
from codea1_env.verdicts import ProblemReport, ValidCase


@dataclass(frozen=True, slots=True)
class Task:
    """One problem to roll out."""

    number: int
    """Of the task in the whole training: all randomness in its tree descends from it."""
    problem_id: str
    replayed: tuple[ValidCase, ...] = ()
    """Cases of the Mistake Book."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How large trees are.

    Raises:
        ValueError: a group of none.
    """

    n_candidates: int = 8
    n_suites: int = 8
    """0: no tester is asked."""
    n_kept: int = 1
    """Candidates per problem whose suites are learnt from (l); says nothing about suites per problem."""
    problems_at_once: int = 8
    suites_per: SuitesPer = SuitesPer.CANDIDATE
    keep_flat_groups: bool = False
    """Whether groups of equal rewards are learnt from (by the divergence and the mean over tokens only)."""

    def __post_init__(self) -> None:
        if min(self.n_candidates, self.n_kept, self.problems_at_once) < 1 or self.n_suites < 0:
            raise ValueError(f"a tree needs at least one of each: {self}")

    @property
    def n_groups(self) -> int:
        """Groups of suites, G: one per candidate, or one."""
        return self.n_candidates if self.suites_per is SuitesPer.CANDIDATE else 1


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
    """(N,); empty if the sandbox failed."""
    coder: Advantages
    """(N,)"""
    tester: Advantages
    """(G, M)"""
    kept: NDArray[np.bool_]
    """(G,): which groups of suites are learnt from."""
    coder_rewards: NDArray[np.float64]
    """(N,), nan where masked."""
    tester_rewards: NDArray[np.float64]
    """(G, M), nan where masked or not asked."""


@dataclass(slots=True)
class RolloutTimes:
    """Where the time of rollouts goes, in seconds; the two overlap."""

    generate_s: float = 0.0
    """Agents at work."""
    judge_s: float = 0.0
    """The sandbox at work."""


class TreeRoller:
    """Rolls out trees.

    Args:
        referee: where tasks find their problems; judges everything.
        players: who answers, by role.
        shape: of the trees.
        seed: of the run.
        tester_view: `white_box` or `black_box`; suites per problem are blind in any case.
    """

    def __init__(
        self,
        referee: Referee,
        players: Mapping[str, Player],
        shape: Shape,
        *,
        seed: int = 0,
        tester_view: str = "white_box",
    ) -> None:
        self._referee, self._players, self._shape, self._seed = referee, players, shape, seed
        self._options = RoundOptions(shows_program=tester_view == "white_box", masks_sandbox_errors=True)
        self.times = RolloutTimes()
        """Since whoever reads them last replaced them."""

    def roll(self, tasks: Sequence[Task]) -> list[Tree]:
        """Return one tree per task, in order.

        What the sandbox itself fails at is masked, never scored.
        """
        size = self._shape.problems_at_once
        parts = [_Part(self, tasks[start : start + size]) for start in range(0, len(tasks), size)]
        for part in parts:
            part.write_programs()
        for part in parts:
            part.write_suites()
        trees = [self._tree(*each) for part in parts for each in part.judged()]
        self.times.judge_s += sum(part.rounds.judge_s for part in parts)
        return trees

    def open(self, tasks: Sequence[Task]) -> Rounds:
        """Return a round of the problems of some tasks, whose turns are to be answered."""
        shape = self._shape
        return self._referee.open(
            [
                Opened(
                    self._referee.problems.by_id(task.problem_id),
                    shape.n_candidates,
                    shape.n_suites,
                    shape.suites_per,
                    task.replayed,
                    name=f"{task.number:08x}",
                    seed=(self._seed, task.number),
                )
                for task in tasks
            ],
            self._options,
        )

    def ask(self, role: str, turns: Sequence[Turn]) -> list[Answer]:
        """Return one answer per turn."""
        begun = time.perf_counter()
        answers = self._players[role].answer(turns) if turns else []
        self.times.generate_s += time.perf_counter() - begun
        return answers

    def _tree(self, task: Task, judged: JudgedTree, programs: list[Answer], suites: list[list[Answer]]) -> Tree:
        n_kept, keeps_flat = self._shape.n_kept, self._shape.keep_flat_groups
        return Tree(
            task=task,
            candidates=tuple(programs),
            suites=tuple(map(tuple, suites)),
            report=judged.report,
            book_report=judged.book_report,
            rewards=judged.rewards,
            coder=group_advantages(judged.coder_rewards, keeps_flat=keeps_flat),
            tester=group_advantages(judged.tester_rewards, keeps_flat=keeps_flat),
            kept=top_variance(judged.tester_rewards, n_kept, keeps_flat=keeps_flat),
            coder_rewards=judged.coder_rewards,
            tester_rewards=judged.tester_rewards,
        )


class _Part:
    """Some problems that are generated and judged together."""

    def __init__(self, roller: TreeRoller, tasks: Sequence[Task]) -> None:
        self.rounds = roller.open(tasks)
        self._roller, self._tasks = roller, tasks
        self._programs: list[list[Answer]] = [[] for _ in tasks]
        self._suites: list[list[list[Answer]]] = [[[] for _ in range(tree.n_groups)] for tree in self.rounds.trees]

    def write_programs(self) -> None:
        turns = self.rounds.coder_turns()
        answers = self._roller.ask("coder", turns)
        for turn, answer in zip(turns, answers, strict=True):
            self._programs[turn.tree].append(answer)
        self.rounds.submit_programs([answer.reply for answer in answers])

    def write_suites(self) -> None:
        turns = self.rounds.tester_turns()
        answers = self._roller.ask("tester", turns)
        for turn, answer in zip(turns, answers, strict=True):
            self._suites[turn.tree][turn.candidate].append(answer)
        self.rounds.submit_suites([answer.reply for answer in answers])

    def judged(self) -> Iterator[tuple[Task, JudgedTree, list[Answer], list[list[Answer]]]]:
        return zip(self._tasks, self.rounds.results(), self._programs, self._suites, strict=True)
