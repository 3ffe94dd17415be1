"""Rollouts of whole trees: a problem, N candidates for it, M suites for each or for all of them, judged together.

While the sandbox checks or judges some problems, the next ones are already generated.
"""

from __future__ import annotations

import time
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
from codea1_env.rules.rewards import CandidateRewards, score_group
from codea1_env.rules.ruleset import Ruleset
from codea1_env.submissions import Candidate, Suite
from codea1_env.trees import SuitesPer, mean_over_candidates
from codea1_env.verdicts import ProblemReport, ValidCase, Verdict

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
        problems: where tasks find their problems.
        judge: runs everything.
        players: who answers, by role.
        shape: of the trees.
        seed: of the run.
        tester_view: `white_box` or `black_box`; suites per problem are blind in any case.
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
        self._shape, self._seed = shape, seed
        self._shows_program = tester_view == "white_box" and shape.suites_per is SuitesPer.CANDIDATE
        self.times = RolloutTimes()
        """Since whoever reads them last replaced them."""

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
        begun = time.perf_counter()
        answers = self._players[role].answer(turns) if turns else []
        self.times.generate_s += time.perf_counter() - begun
        return answers

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
        begun = time.perf_counter()
        try:
            return self._judge.check([(self.problem_of(task), each) for each in candidates])
        except SandboxError:
            return [CandidateCheck(Verdict.INTERNAL_ERROR)] * len(candidates)
        finally:
            self.times.judge_s += time.perf_counter() - begun

    def judged(self, duels: Sequence[Duel]) -> list[ProblemReport | None]:
        """Return reports; runs in the judging thread."""
        begun = time.perf_counter()
        try:
            return list(self._judge.judge(duels))
        except SandboxError:
            return [None] * len(duels)
        finally:
            self.times.judge_s += time.perf_counter() - begun

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
        """Find out who is worth a suite; where none is written for a program, there is nothing to find out."""
        shape = self.roller.shape
        if shape.suites_per is SuitesPer.PROBLEM or not shape.n_suites:
            return [[] for _ in self.tasks]
        return [self.roller.checked(task, group) for task, group in zip(self.tasks, self.programs, strict=True)]

    def write_suites(self, judging: ThreadPoolExecutor) -> None:
        wanted = [
            self._n_suites(found, answers) for found, answers in zip(self.checks.result(), self.candidates, strict=True)
        ]
        turns = [
            self.roller.turn(task, "tester", number, suite, programs[number].program)
            for task, programs, sizes in zip(self.tasks, self.programs, wanted, strict=True)
            for number, size in enumerate(sizes)
            for suite in range(size)
        ]
        replies = iter(self.roller.ask("tester", turns))
        self.suites = [[[next(replies) for _ in range(size)] for size in sizes] for sizes in wanted]
        duels = [self._duel(*each) for each in zip(self.tasks, self.programs, self.suites, strict=True)]
        self.reports = judging.submit(self.roller.judged, duels)

    def _n_suites(self, checks: Sequence[CandidateCheck], answers: Sequence[Answer]) -> list[int]:
        """Return the size of each group of suites of a problem."""
        shape = self.roller.shape
        if not checks:
            return [shape.n_suites] * shape.n_groups
        return [
            shape.n_suites if check.verdict is Verdict.PASSED and not answer.unavailable else 0
            for check, answer in zip(checks, answers, strict=True)
        ]

    def _duel(self, task: Task, programs: Sequence[Candidate], suites: Sequence[Sequence[Answer]]) -> Duel:
        read = tuple(tuple(self.roller.suite_of(task, answer) for answer in group) for group in suites)
        problem = self.roller.problem_of(task)
        if self.roller.shape.suites_per is SuitesPer.PROBLEM:
            return Duel.crossed(problem, programs, read[0], task.replayed)
        return Duel(problem, tuple(programs), read, task.replayed)

    def trees(self) -> Iterator[Tree]:
        checks = self.checks.result()
        for number, report in enumerate(self.reports.result()):
            yield self._tree(self.tasks[number], self.candidates[number], checks[number], self.suites[number], report)

    def _tree(
        self,
        task: Task,
        candidates: Sequence[Answer],
        checks: Sequence[CandidateCheck],
        suites: Sequence[Sequence[Answer]],
        report: ProblemReport | None,
    ) -> Tree:
        shape = self.roller.shape
        rewards = score_group(report, self.roller.rules) if report else ()
        of_coder = np.full(shape.n_candidates, np.nan)
        for n, found in enumerate(rewards):
            group = suites[n if shape.suites_per is SuitesPer.CANDIDATE else 0]
            # A program that could not be checked has met no suite, and a suite that was not written might have
            # failed it: neither is the coder's doing, so neither is scored.
            is_unchecked = bool(checks) and checks[n].verdict is Verdict.INTERNAL_ERROR
            is_partly_tested = any(answer.unavailable for answer in group)
            if not (candidates[n].unavailable or is_unchecked or is_partly_tested):
                of_coder[n] = found.coder.value
        of_tester = self._tester_rewards(report, rewards, suites)
        keeps_flat = shape.keep_flat_groups
        tester = group_advantages(of_tester, keeps_flat=keeps_flat)
        kept = top_variance(of_tester, shape.n_kept, keeps_flat=keeps_flat)
        return Tree(
            task=task,
            candidates=tuple(candidates),
            suites=tuple(map(tuple, suites)),
            report=report,
            rewards=rewards,
            coder=group_advantages(of_coder, keeps_flat=keeps_flat),
            tester=tester,
            kept=kept,
            coder_rewards=of_coder,
            tester_rewards=of_tester,
        )

    def _tester_rewards(
        self,
        report: ProblemReport | None,
        rewards: Sequence[CandidateRewards],
        suites: Sequence[Sequence[Answer]],
    ) -> NDArray[np.float64]:
        """Return (G, M) rewards."""
        shape = self.roller.shape
        found = np.full((shape.n_candidates, shape.n_suites), np.nan)
        for n, of_candidate in enumerate(rewards):
            if of_candidate.testers:
                found[n] = [reward.value for reward in of_candidate.testers]
        if shape.suites_per is SuitesPer.PROBLEM:
            if report is not None:  # an invalid program says nothing about a suite
                found[[not each.is_valid for each in report.candidates]] = np.nan
            found = mean_over_candidates(found)[np.newaxis]
        for g, group in enumerate(suites):
            found[g, [m for m, answer in enumerate(group) if answer.unavailable]] = np.nan
        return found
