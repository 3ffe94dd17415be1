"""Rollouts of whole trees: a problem, N candidates for it, M suites for each of them, judged together.

While the sandbox checks or judges some problems, the next ones are already generated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from codea1_agents.grpo.grouping import Advantages, group_advantages, top_variance
from codea1_agents.grpo.players import Answer, Player, Turn
from codea1_env.errors import SandboxError
from codea1_env.judge import CandidateCheck, Duel, Judge
from codea1_env.observations import Seen, turn_info
from codea1_env.problems import Problem, ProblemSet
from codea1_env.rules.replies import read_candidate, read_suite
from codea1_env.rules.rewards import CandidateRewards, score
from codea1_env.rules.ruleset import Ruleset
from codea1_env.submissions import Candidate, Suite
from codea1_env.verdicts import ProblemReport, ValidCase, Verdict

__all__ = ["Shape", "Task", "Tree", "TreeRoller"]

ROLES = ("coder", "tester")


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
    n_kept: int = 1
    """Candidates per problem whose suites are learnt from (l)."""
    problems_at_once: int = 8

    def __post_init__(self) -> None:
        if min(self.n_candidates, self.n_suites, self.n_kept, self.problems_at_once) < 1:
            raise ValueError(f"a tree needs at least one of each: {self}")


@dataclass(frozen=True, slots=True)
class Tree:
    """One problem's rollouts, N candidates with M suites each."""

    task: Task
    candidates: tuple[Answer, ...]
    """(N,)"""
    suites: tuple[tuple[Answer, ...], ...]
    """(N, M); (N, 0) where a candidate is invalid or masked, so that no tester was asked."""
    report: ProblemReport | None
    """None if the sandbox failed: everything is masked."""
    rewards: tuple[CandidateRewards, ...]
    """(N,); empty if the sandbox failed."""
    coder: Advantages
    """(N,)"""
    tester: Advantages
    """(N, M)"""
    kept: NDArray[np.bool_]
    """(N,): whose suites are learnt from."""
    coder_rewards: NDArray[np.float64]
    """(N,), nan where masked."""
    tester_rewards: NDArray[np.float64]
    """(N, M), nan where masked or not asked."""


class TreeRoller:
    """Rolls out trees.

    Args:
        problems: where tasks find their problems.
        judge: runs everything.
        players: who answers, by role.
        shape: of the trees.
        seed: of the run.
        tester_view: `white_box` or `black_box`.
    """

    def __init__(
        self,
        problems: ProblemSet,
        judge: Judge,
        players: Mapping[str, Player],
        shape: Shape,
        *,
        seed: int = 0,
        tester_view: str = "white_box",
    ) -> None:
        self._problems, self._judge, self._players = problems, judge, players
        self._rules: Ruleset = judge.rules
        self._shape, self._seed, self._shows_program = shape, seed, tester_view == "white_box"

    def roll(self, tasks: Sequence[Task]) -> list[Tree]:
        """Return one tree per task, in order.

        What the sandbox itself fails at is masked, never scored.
        """
        size = self._shape.problems_at_once
        parts = [tasks[start : start + size] for start in range(0, len(tasks), size)]
        with ThreadPoolExecutor(1, thread_name_prefix="codea1-judging") as judging:
            begun = [_Part(self, part) for part in parts]
            for part in begun:
                part.write_candidates(judging)
            for part in begun:
                part.write_suites(judging)
            return [tree for part in begun for tree in part.trees()]

    # What the parts need

    def ask(self, role: str, turns: Sequence[Turn]) -> list[Answer]:
        """Return one answer per turn."""
        return self._players[role].answer(turns) if turns else []

    def turn(self, task: Task, role: str, candidate: int, suite: int, program: str) -> Turn:
        """Return what a role sees at one place of a tree."""
        problem = self.problem_of(task)
        shown = program if self._shows_program else ""
        info = turn_info(
            problem,
            episode_id=f"{task.number:08x}-{candidate}-{max(suite, 0)}",
            role=role,
            round_=0,
            tests_per_suite=self._rules.tests_per_suite,
            program=shown if role == "tester" else "",
        )
        seed = (self._seed, task.number, ROLES.index(role), candidate, max(suite, 0))
        return Turn(Seen(problem, 0, shown).to_dict(), info, seed)

    def problem_of(self, task: Task) -> Problem:
        """Return the problem of a task."""
        return self._problems.by_id(task.problem_id)

    def candidate_of(self, task: Task, answer: Answer) -> Candidate:
        """Return the program in an answer."""
        return read_candidate(answer.text, self._rules.reading, entry_point=self.problem_of(task).entry_point)

    def suite_of(self, task: Task, answer: Answer) -> Suite:
        """Return the tests in an answer."""
        rules, entry_point = self._rules, self.problem_of(task).entry_point
        return read_suite(answer.text, rules.reading, entry_point=entry_point, tests_per_suite=rules.tests_per_suite)

    def checked(self, task: Task, candidates: Sequence[Candidate]) -> list[CandidateCheck]:
        """Return whether the candidates are valid; runs in the judging thread."""
        try:
            return self._judge.check(self.problem_of(task), candidates)
        except SandboxError:
            return [CandidateCheck(Verdict.INTERNAL_ERROR)] * len(candidates)

    def judged(self, duels: Sequence[Duel]) -> list[ProblemReport | None]:
        """Return reports; runs in the judging thread."""
        try:
            return list(self._judge.judge(duels))
        except SandboxError:
            return [None] * len(duels)

    @property
    def rules(self) -> Ruleset:
        """Of the game."""
        return self._rules

    @property
    def shape(self) -> Shape:
        """Of the trees."""
        return self._shape


class _Part:
    """Some problems that are generated and judged together."""

    def __init__(self, roller: TreeRoller, tasks: Sequence[Task]) -> None:
        self.roller, self.tasks = roller, tasks
        self.candidates: list[list[Answer]] = []
        self.programs: list[list[Candidate]] = []
        self.suites: list[list[list[Answer]]] = []
        self.checks: Future[list[list[CandidateCheck]]]
        self.reports: Future[list[ProblemReport | None]]

    def write_candidates(self, judging: ThreadPoolExecutor) -> None:
        n = self.roller.shape.n_candidates
        turns = [self.roller.turn(task, "coder", number, -1, "") for task in self.tasks for number in range(n)]
        answers = iter(self.roller.ask("coder", turns))
        self.candidates = [[next(answers) for _ in range(n)] for _ in self.tasks]
        self.programs = [
            [self.roller.candidate_of(task, answer) for answer in group]
            for task, group in zip(self.tasks, self.candidates, strict=True)
        ]
        self.checks = judging.submit(self._check)

    def _check(self) -> list[list[CandidateCheck]]:
        return [self.roller.checked(task, group) for task, group in zip(self.tasks, self.programs, strict=True)]

    def write_suites(self, judging: ThreadPoolExecutor) -> None:
        checks = self.checks.result()
        turns = [
            self.roller.turn(task, "tester", number, suite, program.program)
            for task, programs, found, answers in zip(self.tasks, self.programs, checks, self.candidates, strict=True)
            for number, (program, check, answer) in enumerate(zip(programs, found, answers, strict=True))
            for suite in range(self._n_suites(check, answer))
        ]
        replies = iter(self.roller.ask("tester", turns))
        self.suites = [
            [[next(replies) for _ in range(self._n_suites(*pair))] for pair in zip(found, answers, strict=True)]
            for found, answers in zip(checks, self.candidates, strict=True)
        ]
        duels = [self._duel(*each) for each in zip(self.tasks, self.programs, self.suites, strict=True)]
        self.reports = judging.submit(self.roller.judged, duels)

    def _n_suites(self, check: CandidateCheck, answer: Answer) -> int:
        return self.roller.shape.n_suites if check.verdict is Verdict.PASSED and not answer.unavailable else 0

    def _duel(self, task: Task, programs: Sequence[Candidate], suites: Sequence[Sequence[Answer]]) -> Duel:
        read = tuple(tuple(self.roller.suite_of(task, answer) for answer in group) for group in suites)
        return Duel(self.roller.problem_of(task), tuple(programs), read, task.replayed)

    def trees(self) -> Iterator[Tree]:
        for number, report in enumerate(self.reports.result()):
            yield self._tree(self.tasks[number], self.candidates[number], self.suites[number], report)

    def _tree(
        self,
        task: Task,
        candidates: Sequence[Answer],
        suites: Sequence[Sequence[Answer]],
        report: ProblemReport | None,
    ) -> Tree:
        shape = self.roller.shape
        rewards = tuple(score(each, self.roller.rules) for each in report.candidates) if report else ()
        of_coder = np.full(shape.n_candidates, np.nan)
        of_tester = np.full((shape.n_candidates, shape.n_suites), np.nan)
        for n, found in enumerate(rewards):
            if not candidates[n].unavailable:
                of_coder[n] = found.coder.value
            for m, reward in enumerate(found.testers):
                if not suites[n][m].unavailable:
                    of_tester[n, m] = reward.value
        tester = group_advantages(of_tester)
        kept = top_variance(of_tester, shape.n_kept)
        return Tree(
            task=task,
            candidates=tuple(candidates),
            suites=tuple(map(tuple, suites)),
            report=report,
            rewards=rewards,
            coder=group_advantages(of_coder),
            tester=tester,
            kept=kept,
            coder_rewards=of_coder,
            tester_rewards=of_tester,
        )
