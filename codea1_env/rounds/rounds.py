"""Rounds: read, check, judge and score the replies for a batch of trees. Except for the audit, all judging runs here.

::

    rounds = referee.open([Tree(problem, n_candidates=8, n_suites=8) for problem in problems])
    rounds.submit_programs([reply to each of rounds.coder_turns()])
    rounds.submit_suites([reply to each of rounds.tester_turns()])      # waits for the load checks
    for judged in rounds.results():                                     # waits for the verdicts
        judged.coder_rewards, judged.tester_rewards, judged.report, judged.book_report

A driver submits the replies of agents, or programs and suites that it has already; for those it does not need the
turns. `submit_programs` and `submit_suites` return at once. The referee's thread then reads and judges the batches in
the order of submission. So a driver with several `Rounds` overlaps agents and sandbox: it submits the programs of the
next one before it waits for the first.

The owner of the Mistake Book reads it before the round (`Tree.replayed`) and writes it after the round
(`JudgedTree.book_report`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from typing import Any, TypeVar

from codea1_env.agent import Info, Observation, Role
from codea1_env.errors import AgentUnavailable, SandboxError, UserError, as_lists
from codea1_env.facts.problem_kinds import ProblemKind
from codea1_env.facts.submissions import Candidate, Suite
from codea1_env.facts.verdicts import CandidateCheck, CandidateReport, ProblemReport, Verdict
from codea1_env.judging.judge import Duel, Judge
from codea1_env.observations import ObservationFields, turn_info
from codea1_env.problems.problem import Problem
from codea1_env.rounds.trees import JudgedTree, Program, SuitesPer, Tests, Tree, scored_tree
from codea1_env.rules.replies import read_candidate, read_suite
from codea1_env.rules.ruleset import Reading, Ruleset

_T = TypeVar("_T")
_ROLES: tuple[Role, ...] = ("coder", "tester")


@dataclass(frozen=True, slots=True)
class Turn:
    """A request for one reply of an agent."""

    observation: Observation
    """As in `codea1_env.code_a1_v0`."""
    info: Info
    """The environment's infos of an agent that acts, plus the label's `extra`."""
    seed: tuple[int, ...] = ()
    """The seed key of the reply's randomness."""
    tree: int = 0
    """Position of its tree among the trees of the round."""
    candidate: int = 0
    """Candidate of the tree; for a tester, the candidate that its suite is for, or 0 if the suite is for all."""
    suite: int = 0
    """Position of the suite within its group; 0 for a coder."""


@dataclass(frozen=True, slots=True)
class Label:
    """Identifies one turn."""

    episode_id: str
    seed: tuple[int, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Added to the infos, e.g. `sample` or `tester_view`."""


Labels = Callable[[Tree, Role, int, int], Label]
"""From a tree, a role, a candidate and a suite (0 for a coder) to the turn's label."""


def tree_labels(tree: Tree, role: Role, candidate: int, suite: int) -> Label:
    """Label a turn by its position: id `NAME-CANDIDATE-SUITE`, seed key (*tree.seed, role, candidate, suite)."""
    return Label(f"{tree.name}-{candidate}-{suite}", (*tree.seed, _ROLES.index(role), candidate, suite))


@dataclass(frozen=True, slots=True)
class RoundOptions:
    """How a batch of trees is played."""

    labels: Labels = tree_labels
    shows_program: bool = True
    """Whether a tester sees the program; the tester of a suite for all candidates never does."""
    skips_invalid: bool = True
    """Whether testers have no turn for a program that does not load. Each program is then loaded before their turns."""
    masks_sandbox_errors: bool = False
    """Whether trees are masked if the sandbox cannot be used at all; else the methods that wait raise SandboxError."""


@dataclass(frozen=True, slots=True)
class _Programs:
    """The programs of one tree."""

    candidates: tuple[Candidate, ...]
    """(N,)"""
    early_checks: tuple[CandidateCheck | None, ...]
    """(N,) the result of a candidate that is not judged; None for a candidate that is judged and gets suites."""


class Rounds:
    """One round of a batch of trees, in phases: coder_turns, submit_programs, tester_turns, submit_suites, results.

    `tester_turns` waits if programs are checked, and `results` waits. Not thread-safe.
    """

    def __init__(
        self,
        trees: Sequence[Tree],
        judge: Judge,
        options: RoundOptions | None = None,
        *,
        executor: Executor | None = None,
    ) -> None:
        """Open a batch; usually called by `Referee.open`.

        Args:
            trees: may be empty.
            judge: judges all of them.
            options: how they are played.
            executor: has one thread, which reads and judges; None: the caller's thread does so when it waits.
        """
        self.trees = tuple(trees)
        self.judge_s = 0.0
        """Seconds that checks and judging have taken so far."""
        self._judge, self._options, self._executor = judge, options or RoundOptions(), executor
        self._replies: list[tuple[Program, ...]] = []
        self._groups: list[list[tuple[Tests, ...]]] = []
        self._programs: Callable[[], list[_Programs]] | None = None
        self._reports: Callable[[], Sequence[ProblemReport | SandboxError]] | None = None

    # -- coders --

    def coder_turns(self) -> list[Turn]:
        """Return N turns per tree, tree by tree."""
        return [self._turn(t, "coder", n, 0) for t, tree in enumerate(self.trees) for n in range(tree.n_candidates)]

    def submit_programs(self, programs: Sequence[Program]) -> None:
        """Submit all programs, in the order of `coder_turns`, and start to read and check them.

        Raises:
            UserError: their number differs from the number of turns, or one is no reply.
        """
        n_wanted = sum(tree.n_candidates for tree in self.trees)
        given = iter(_replies("programs", programs, n_wanted, Candidate))
        self._replies = [tuple(islice(given, tree.n_candidates)) for tree in self.trees]
        self._programs = self._start(self._read_and_check)

    def candidates(self) -> list[tuple[Candidate, ...]]:
        """Return the candidates read from the programs, (N,) per tree; waits for the checks.

        Raises:
            SandboxError: the sandbox cannot be used at all.
        """
        return [each.candidates for each in self._read_programs()]

    def early_verdicts(self) -> list[tuple[Verdict | None, ...]]:
        """Return the verdicts on programs that get no suites, None for all others, (N,) per tree; waits.

        Raises:
            SandboxError: the sandbox cannot be used at all.
        """
        return [
            tuple(None if check is None else check.verdict for check in each.early_checks)
            for each in self._read_programs()
        ]

    # -- testers --

    def tester_turns(self) -> list[Turn]:
        """Return M turns per group of each tree, tree by tree, group by group; waits for the checks.

        A program that is masked has no turns, and, if `skips_invalid`, neither has a program that does not load. Suites
        for all candidates do not depend on the programs, so their turns are available before them.

        Raises:
            SandboxError: the sandbox cannot be used at all.
        """
        return [
            self._turn(t, "tester", g, m)
            for t in range(len(self.trees))
            for g, size in enumerate(self._sizes(t))
            for m in range(size)
        ]

    def submit_suites(self, suites: Sequence[Tests]) -> None:
        """Submit all suites, in the order of `tester_turns`, and start to judge.

        Raises:
            UserError: their number differs from the number of turns, or one is no reply.
            SandboxError: as `tester_turns`.
        """
        sizes = [self._sizes(t) for t in range(len(self.trees))]
        given = iter(_replies("suites", suites, sum(map(sum, sizes)), Suite))
        self.submit_groups([[tuple(islice(given, size)) for size in of_tree] for of_tree in sizes])

    def submit_groups(self, groups: Sequence[Sequence[Sequence[Tests]]]) -> None:
        """Submit suites that a driver has already, any number for each group of each tree, and start to judge.

        Args:
            groups: (T, G, any number) of T trees with G groups each.

        Raises:
            ValueError: the number of groups of a tree is wrong.
        """
        if [len(of_tree) for of_tree in groups] != [tree.n_groups for tree in self.trees]:
            raise ValueError("there must be one group of suites for each group of every tree")
        self._groups = [list(map(tuple, of_tree)) for of_tree in groups]
        self._reports = self._start(self._judged)

    # -- both --

    def give_up(self, why: str) -> None:
        """End all trees, masked, because an agent gave no reply; nothing more runs.

        Args:
            why: the detail of every candidate's report, so it must be the same in every process.
        """
        if self._programs is None:
            self.submit_programs([AgentUnavailable(why) for tree in self.trees for _ in range(tree.n_candidates)])
        else:
            given_up = CandidateCheck(Verdict.INTERNAL_ERROR, why)
            found = [replace(each, early_checks=(given_up,) * len(each.early_checks)) for each in self._programs()]
            self._programs = lambda: found
        self.submit_groups([[()] * tree.n_groups for tree in self.trees])

    def fork(self, **options: Any) -> Rounds:
        """Return another round of the same programs, for other suites; it does not read and check them again.

        Args:
            options: fields of `RoundOptions` that differ.

        Raises:
            RuntimeError: no programs have been submitted.
        """
        if self._programs is None:
            raise RuntimeError("fork needs submit_programs first")
        other = Rounds(self.trees, self._judge, replace(self._options, **options), executor=self._executor)
        other._replies, other._programs = self._replies, self._programs
        return other

    def results(self) -> list[JudgedTree]:
        """Return one judged tree per tree, in order; waits. If no tester has a turn, no suites need be submitted.

        Raises:
            RuntimeError: programs or suites have not been submitted.
            SandboxError: the sandbox cannot be used at all.
        """
        if self._reports is None:
            if any(sum(self._sizes(t)) for t in range(len(self.trees))):
                raise RuntimeError("results need submit_suites first")
            self.submit_suites(())
        assert self._reports is not None
        return [
            scored_tree(*each, self._judge.rules)
            for each in zip(self.trees, self._replies, self._groups, self._reports(), strict=True)
        ]

    def __reduce__(self) -> tuple[Any, ...]:
        raise UserError("a round stays in its process: pickle an environment before its first reset")

    # -- implementation --

    def _start(self, work: Callable[[], _T]) -> Callable[[], _T]:
        """Start the work and return a function that waits for its result."""
        return cache(work) if self._executor is None else self._executor.submit(work).result

    def _read_programs(self) -> list[_Programs]:
        if self._programs is None:
            raise RuntimeError("submit_programs comes first")
        return self._programs()

    def _sizes(self, t: int) -> list[int]:
        """Return the number of tester turns of each group."""
        tree = self.trees[t]
        if tree.suites_per is SuitesPer.PROBLEM or not tree.n_suites:
            return [tree.n_suites] * tree.n_groups
        return [tree.n_suites if check is None else 0 for check in self._read_programs()[t].early_checks]

    def _turn(self, t: int, role: Role, n: int, m: int) -> Turn:
        tree, shown = self.trees[t], ""
        if role == "tester" and self._options.shows_program and tree.suites_per is SuitesPer.CANDIDATE:
            shown = self._read_programs()[t].candidates[n].program
        label = self._options.labels(tree, role, n, m)
        info = turn_info(
            tree.problem,
            episode_id=label.episode_id,
            role=role,
            round_=0,
            tests_per_suite=self._judge.rules.tests_per_suite,
            program=shown,
        )
        return Turn(ObservationFields(tree.problem, 0, shown).to_dict(), {**info, **label.extra}, label.seed, t, n, m)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.judge_s += time.perf_counter() - begun

    def _read_and_check(self) -> list[_Programs]:
        read = [
            tuple(candidate_of(reply, tree.problem, self._judge.rules) for reply in replies)
            for tree, replies in zip(self.trees, self._replies, strict=True)
        ]
        early_checks = [list(map(_missing, replies)) for replies in self._replies]
        places = [
            (t, n)
            for t, tree in enumerate(self.trees)
            if self._checks(tree)
            for n in range(tree.n_candidates)
            if early_checks[t][n] is None
        ]
        with self._timed():
            checks = self._checked([(self.trees[t], read[t][n]) for t, n in places])
        for (t, n), check in zip(places, checks, strict=True):
            early_checks[t][n] = None if check.verdict is Verdict.PASSED else check
        return [_Programs(candidates, tuple(known)) for candidates, known in zip(read, early_checks, strict=True)]

    def _checks(self, tree: Tree) -> bool:
        """Whether the programs of a tree must be loaded before its suites are written."""
        return self._options.skips_invalid and tree.suites_per is SuitesPer.CANDIDATE and tree.n_suites > 0

    def _checked(self, programs: Sequence[tuple[Tree, Candidate]]) -> list[CandidateCheck]:
        try:
            return self._judge.check([(tree.problem, candidate) for tree, candidate in programs])
        except SandboxError as error:
            if not self._options.masks_sandbox_errors:
                raise
            return [CandidateCheck(Verdict.INTERNAL_ERROR, str(error))] * len(programs)

    def _judged(self) -> Sequence[ProblemReport | SandboxError]:
        written = self._read_programs()
        duels = list(map(self._duel, self.trees, written, self._groups))
        try:
            with self._timed():
                reports = self._judge.judge(duels)
        except SandboxError as error:
            if not self._options.masks_sandbox_errors:
                raise
            return [error] * len(duels)
        return list(map(self._with_early_checks, reports, written))

    def _duel(self, tree: Tree, written: _Programs, groups: Sequence[Sequence[Tests]]) -> Duel:
        # Candidates with an early check do not run again: the judge gets an empty program in their place.
        candidates = tuple(
            candidate if check is None else Candidate("")
            for candidate, check in zip(written.candidates, written.early_checks, strict=True)
        )
        read = tuple(tuple(self._suite(tree, reply) for reply in group) for group in groups)
        if tree.suites_per is SuitesPer.PROBLEM:
            return Duel.crossed(tree.problem, candidates, read[0], tree.replayed)
        return Duel(tree.problem, candidates, read, tree.replayed)

    def _with_early_checks(self, report: ProblemReport, written: _Programs) -> ProblemReport:
        """Return the report with the early checks of those candidates that did not run again."""
        candidates = [
            found if check is None else self._with_early_check(found, candidate, check)
            for found, candidate, check in zip(report.candidates, written.candidates, written.early_checks, strict=True)
        ]
        return replace(report, candidates=tuple(candidates))

    def _with_early_check(
        self, report: CandidateReport, candidate: Candidate, check: CandidateCheck
    ) -> CandidateReport:
        # The empty program in its place has failed the golden tests, as it would; the rate of a masked one is unknown.
        rate = None if check.verdict is Verdict.INTERNAL_ERROR else report.golden_pass_rate
        return replace(report, candidate=candidate, verdict=check.verdict, detail=check.detail, golden_pass_rate=rate)

    def _suite(self, tree: Tree, reply: Tests) -> Suite:
        if isinstance(reply, Suite):
            return reply
        rules, text = self._judge.rules, reply if isinstance(reply, str) else ""
        return suite_of(text, tree.problem, rules.reading, rules.tests_per_suite)


def _replies(name: str, replies: Sequence[_T], n_wanted: int, read: type) -> list[_T]:
    """Return the replies as a list.

    Raises:
        UserError: their number is wrong, or one is neither text, nor what was read from one, nor unavailable.
    """
    (found,) = as_lists(**{name: replies})
    if len(found) != n_wanted:
        raise UserError(f"{len(found)} {name} for {n_wanted} turns")
    for reply in found:
        if not isinstance(reply, str | read | AgentUnavailable):
            fault = f"{type(reply).__name__} ({reply!r:.100})"
            raise UserError(f"{name} must be texts, {read.__name__} or AgentUnavailable, not {fault}")
    return found


def candidate_of(reply: Program, problem: Problem, rules: Ruleset) -> Candidate:
    """Return the candidate read from a reply; an empty one if there was no reply."""
    if not isinstance(reply, str):
        return reply if isinstance(reply, Candidate) else Candidate("")
    bound = rules.max_program_bytes
    entry_point = "" if problem.kind is ProblemKind.STDIN else problem.entry_point
    return read_candidate(reply, rules.reading, entry_point=entry_point, max_program_bytes=bound)


def suite_of(reply: str, problem: Problem, reading: Reading, tests_per_suite: int | None = None) -> Suite:
    """Return the suite read from a reply; see `read_suite`."""
    return read_suite(
        reply,
        reading,
        entry_point=problem.entry_point,
        tests_per_suite=tests_per_suite,
        output=problem.script,
        forms=problem.calls,
    )


def _missing(reply: Program) -> CandidateCheck | None:
    """Return the early check of a reply that did not come; None if it came."""
    return CandidateCheck(Verdict.INTERNAL_ERROR, str(reply)) if isinstance(reply, AgentUnavailable) else None
