"""Rounds: read, check, judge and score the replies for a batch of trees. Except for the audit, all judging runs here.

A tree is one problem with N candidates and M suites. A round of the two-agent game is a tree of one candidate and one
suite. A GRPO group, the samples of an evaluation and a matrix of programs and suites are larger trees.

::

    rounds = referee.open([Tree(problem, n_candidates=8, n_suites=8) for problem in problems])
    rounds.submit_programs([reply to each of rounds.coder_turns()])     # reads the programs and loads them
    rounds.submit_suites([reply to each of rounds.tester_turns()])      # reads the suites, judges and scores
    for judged in rounds.results():
        judged.coder_rewards, judged.tester_rewards, judged.report, judged.book_report

`rounds.play(coder, tester)` does all of it. A driver submits the replies of agents, or programs and suites that it has
already; for those it does not need the turns. Each method does its work before it returns. A driver that collects other
replies meanwhile runs the method on the referee's thread, as `GroupVector` does:
`work = referee.start(rounds.submit_programs, programs)`, `work.result()`.

The owner of the Mistake Book reads it before the round (`Tree.replayed`) and writes it after the round
(`JudgedTree.book_report`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from math import inf
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar

import numpy as np

from codea1_env.errors import AgentUnavailable, SandboxError, UserError, as_lists, of_type, whole_number
from codea1_env.facts.submissions import Candidate, Info, Observation, Role, Suite
from codea1_env.facts.verdicts import CandidateCheck, ProblemReport, ValidCase, Verdict
from codea1_env.judging.judge import Duel, Judge
from codea1_env.observations import observation_of, turn_info
from codea1_env.problems.problem import Problem
from codea1_env.problems.python_source import imports_of
from codea1_env.python_text import remembered_up_to
from codea1_env.rules.replies import read_candidate, read_suite
from codea1_env.rules.rewards import CandidateRewards, Reward, Rewards, mean_over_candidates, score_group
from codea1_env.rules.ruleset import Reading, Ruleset

Program: TypeAlias = str | Candidate | AgentUnavailable
"""A coder's raw reply, a program that was read before, or the reason why there is none; that is masked."""
Tests: TypeAlias = str | Suite | AgentUnavailable
"""A tester's raw reply, a suite that was read before, or the reason why there is none."""
_MAX_NAMED = 5


class SuitesPer(StrEnum):
    """For what a suite is written, and therefore which suites form a group."""

    CANDIDATE = "candidate"
    """M suites for each candidate, run against it only."""
    PROBLEM = "problem"
    """M suites per problem, written without the programs and run against every candidate; one group (the paper's
    self-play)."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A candidate's way through the rounds of an episode, up to a round: what its players are shown in that round."""

    number: int
    """Of the candidate in the first round, from 0."""
    program: str
    """Its program of the round before."""
    suite: int
    """Position of the suite that the feedback is about, in the group of the round before."""
    coder_feedback: str
    tester_feedback: str


@dataclass(frozen=True, slots=True)
class Tree:
    """The shape of what is played about one problem in one round.

    Raises:
        UserError: there is less than one candidate, or the number of suites is negative, or they are not whole numbers.
    """

    problem: Problem
    n_candidates: int = 1
    """N."""
    n_suites: int = 1
    """M, per group; 0 without a tester."""
    suites_per: SuitesPer = SuitesPer.CANDIDATE
    replayed: tuple[ValidCase, ...] = ()
    """Cases of the Mistake Book that every candidate runs; the owner of the book has read them."""
    name: str = ""
    """Prefix of the `episode_id` of its turns."""
    seed: tuple[int, ...] = ()
    """Prefix of the seed key of its turns."""
    round: int = 0
    """Of the episode, from 0."""
    trajectories: tuple[Trajectory, ...] = ()
    """(N,) those that play a later round; () in the first, whose players have seen nothing."""

    def __post_init__(self) -> None:
        of_type("the problem of a tree", self.problem, Problem)
        whole_number("n_candidates", self.n_candidates, most=inf)
        whole_number("n_suites", self.n_suites, most=inf, least=0)
        if bool(self.round) != bool(self.trajectories) or len(self.trajectories) not in (0, self.n_candidates):
            raise UserError(
                f"round {self.round} of a tree needs {self.n_candidates if self.round else 0} trajectories, "
                f"got {len(self.trajectories)}"
            )

    @property
    def numbers(self) -> tuple[int, ...]:
        """(N,) the number of each candidate in the first round; in later ones some are missing."""
        return tuple(each.number for each in self.trajectories) or tuple(range(self.n_candidates))

    @property
    def n_groups(self) -> int:
        """Groups of suites, G: one per candidate, or one."""
        return self.n_candidates if self.suites_per is SuitesPer.CANDIDATE else 1


@dataclass(frozen=True, slots=True, eq=False)
class JudgedTree:
    """One tree with its verdicts and rewards: N candidates, G groups of M suites; G is N, or 1 for shared suites."""

    tree: Tree
    programs: tuple[Program, ...]
    """(N,) as they were submitted."""
    suites: tuple[tuple[Tests, ...], ...]
    """(G, M) as they were submitted; (G, 0) where the program does not load or is masked."""
    report: ProblemReport | None
    """(N,) candidates, each with the suites of its group; None: the sandbox could not be used, so all is masked."""
    rewards: tuple[CandidateRewards, ...]
    """(N,) the rewards of the report under the rules, with parts; () without a report. Only the two arrays below mask
    rewards for a missing reply."""
    coder_rewards: Rewards
    """(N,), nan where masked: the sandbox failed on the program, its reply is missing, it loads but the reply of a
    suite of its group is missing, or the rules mask it."""
    tester_rewards: Rewards
    """(G, M), nan where masked or where there was no turn. A suite for all candidates gets its mean over those that
    load."""
    failure: str = ""
    """Why the sandbox could not be used; empty if there is a report."""

    def __repr__(self) -> str:
        return f"<JudgedTree {self.report or self.failure!r:.100}; coders {self.coder_rewards.round(3).tolist()!s:.60}>"

    @property
    def book_report(self) -> ProblemReport | None:
        """The report for `MistakeBook.record`, without the candidates that a missing reply masks.

        None if no candidate is left, or if our own failure hides evidence.
        """
        if self.report is None:
            return None
        answered = tuple([report for n, report in enumerate(self.report.candidates) if not self._lacks_reply(n)])
        if not answered or any(report.has_internal_error for report in answered):
            return None
        return replace(self.report, candidates=answered)

    def _lacks_reply(self, candidate: int) -> bool:
        """Whether the program is missing, or loads and a suite of its group is missing, which might have failed it."""
        loads = self.report is not None and self.report.candidates[candidate].loads
        replies = (self.programs[candidate], *(self.group_of(candidate) if loads else ()))
        return any(isinstance(reply, AgentUnavailable) for reply in replies)

    def group_of(self, candidate: int) -> tuple[Tests, ...]:
        """Return the suites that a candidate ran, as they were submitted."""
        return self.suites[candidate if self.tree.suites_per is SuitesPer.CANDIDATE else 0]

    def of_suites(self, number: Callable[[Reward], float]) -> Rewards:
        """Return a number of each suite's reward, e.g. one of its parts, as `tester_rewards` has their values.

        Args:
            number: the reward; nan if it is masked.
        """
        tree, suites = self.tree, self.suites
        numbers = np.full((tree.n_candidates, max([tree.n_suites, *map(len, suites)])), np.nan)
        for n, each in enumerate(self.rewards):
            numbers[n, : len(each.testers)] = [number(reward) for reward in each.testers]
        if tree.suites_per is SuitesPer.PROBLEM:
            if self.report is not None:  # an invalid program is not evidence about a suite
                numbers[[not each.loads for each in self.report.candidates]] = np.nan
            numbers = mean_over_candidates(numbers)[np.newaxis]
        for g, group in enumerate(suites):
            numbers[g, [m for m, reply in enumerate(group) if isinstance(reply, AgentUnavailable)]] = np.nan
        return numbers

    def why_masked(self, candidate: int) -> str:
        """Return why a reward of a candidate or of a suite of its group is nan; call it only if one is."""
        for reply in (self.programs[candidate], *self.group_of(candidate)):
            if isinstance(reply, AgentUnavailable):
                return str(reply) or "an agent was unavailable"
        if self.report is None:
            return self.failure
        return self.report.candidates[candidate].internal_error or "the rules mask it for lack of evidence"


def require_golden_tests(problems: Sequence[Problem], rules: Ruleset) -> None:
    """Raise an error if `rules` pay for golden tests and a problem has none.

    Raises:
        UserError: a problem has no golden tests, so its rewards could never be computed.
    """
    if not rules.reward.needs_golden:
        return
    without = [problem.id for problem in problems if not problem.golden]
    if without:
        listed = ", ".join(without[:_MAX_NAMED]) + (", ..." if len(without) > _MAX_NAMED else "")
        raise UserError(
            f"rules {rules.name} pay for golden tests, which {len(without)} of {len(problems)} problems do not have:"
            f" {listed}"
        )


_T = TypeVar("_T")
_U = TypeVar("_U")
_ROLES: tuple[Role, ...] = ("coder", "tester")


@dataclass(frozen=True, slots=True)
class Turn:
    """A request for one reply of an agent."""

    observation: Observation
    """As in `codea1_env.code_a1_v0`."""
    info: Info
    """The environment's infos of an agent that acts, and `sample` if the round samples replies."""
    seed: tuple[int, ...] = ()
    """The seed key of the reply's randomness."""
    tree: int = 0
    """Position of its tree among the trees of the round."""
    candidate: int = 0
    """Candidate of the tree; for a tester, the candidate that its suite is for, or 0 if the suite is for all."""
    suite: int = 0
    """Position of the suite within its group; 0 for a coder."""


@dataclass(frozen=True, slots=True)
class RoundOptions:
    """How a batch of trees is played."""

    sample_of: Callable[[int, int], int] | None = None
    """From a candidate and a suite (0 for a coder) to the number of the sample that a turn asks for, of the replies to
    equal observations: its infos say `sample`, and its `episode_id` is `PROBLEM/SAMPLE`. None: a turn is named by its
    place, `NAME-CANDIDATE-SUITE`, and has a seed key of its own."""
    tester_view: str = ""
    """What the infos of testers say that they see. Under `white_box`, or where it is empty, the tester of one
    candidate sees its program; the tester of a suite for all candidates never does."""
    skips_invalid: bool = True
    """Whether testers skip a program that does not load. Each program is then loaded before their turns."""
    masks_sandbox_errors: bool = False
    """Whether trees are masked if the sandbox cannot be used at all; else the methods that wait raise SandboxError."""


@dataclass(frozen=True, slots=True)
class _Programs:
    """The programs of one tree, read and checked."""

    replies: tuple[Program, ...]
    """(N,) as they were submitted."""
    candidates: tuple[Candidate, ...]
    """(N,)"""
    early_checks: tuple[CandidateCheck | None, ...]
    """(N,) the result of a candidate that must not run (again); None for all others, which get suites."""


class Rounds:
    """One round of a batch of trees, in phases: coder_turns, submit_programs, tester_turns, submit_suites, results.

    A phase that raises an error leaves the round as it was, so the same replies may be submitted again. Not
    thread-safe.
    """

    def __init__(self, trees: Sequence[Tree], judge: Judge, options: RoundOptions | None = None) -> None:
        """Open a batch; usually called by `Referee.open`.

        Args:
            trees: may be empty.
            judge: judges all of them.
            options: how they are played.
        """
        self.trees = tuple(trees)
        self.judge_s = 0.0
        """Seconds that checks and judging have taken so far."""
        self._judge, self._options = judge, options or RoundOptions()
        self._programs: list[_Programs] | None = None
        self.judged: dict[int, JudgedTree] = {}
        """By position, the trees that are judged so far; `results` returns all."""

    # -- coders --

    def coder_turns(self) -> list[Turn]:
        """Return N turns per tree, tree by tree."""
        return [turn for t in range(len(self.trees)) for turn in self.turns_of(t, "coder")]

    def submit_programs(self, programs: Sequence[Program]) -> None:
        """Read all programs, in the order of `coder_turns`, and load those whose testers depend on it.

        A tree in which no tester has a turn is judged at once.

        Raises:
            UserError: their number differs from the number of turns, or one is not a reply.
            SandboxError: the sandbox cannot be used at all.
        """
        n_turns = sum(tree.n_candidates for tree in self.trees)
        rest = iter(_checked_replies("programs", programs, n_turns, Candidate))
        replies = [tuple(islice(rest, tree.n_candidates)) for tree in self.trees]
        read = [
            tuple(candidate_of(reply, tree.problem, self._judge.rules) for reply in of_tree)
            for tree, of_tree in zip(self.trees, replies, strict=True)
        ]
        early_checks = [
            [
                CandidateCheck(Verdict.INTERNAL_ERROR, str(each)) if isinstance(each, AgentUnavailable) else None
                for each in of_tree
            ]
            for of_tree in replies
        ]
        places = [
            (t, n)
            for t, tree in enumerate(self.trees)
            if self._options.skips_invalid and tree.suites_per is SuitesPer.CANDIDATE and tree.n_suites
            for n in range(tree.n_candidates)
            if early_checks[t][n] is None
        ]
        checks, failure = self._ask(self._judge.check, [(self.trees[t].problem, read[t][n]) for t, n in places])
        for (t, n), check in zip(places, checks, strict=True):
            known = check or CandidateCheck(Verdict.INTERNAL_ERROR, failure)
            early_checks[t][n] = None if known.verdict is Verdict.PASSED else known
        before, self._programs = self._programs, list(map(_Programs, replies, read, map(tuple, early_checks)))
        over = [t for t in range(len(self.trees)) if not any(self._sizes(t))]
        try:
            self._judge_trees({t: ((),) * self.trees[t].n_groups for t in over})
        except SandboxError:
            self._programs = before
            raise

    def candidates(self) -> list[tuple[Candidate, ...]]:
        """Return the candidates read from the programs, (N,) per tree."""
        return [each.candidates for each in self._read_programs()]

    def early_verdicts(self) -> list[tuple[Verdict | None, ...]]:
        """Return the verdicts on programs that get no suites, None for all others, (N,) per tree."""
        return [
            tuple(None if check is None else check.verdict for check in each.early_checks)
            for each in self._read_programs()
        ]

    # -- testers --

    def tester_turns(self) -> list[Turn]:
        """Return M turns per group of each tree, tree by tree, group by group.

        A program that is masked has no turns, and, if `skips_invalid`, neither has a program that does not load. Suites
        for all candidates do not depend on the programs, so their turns are available before them.
        """
        return [turn for t in range(len(self.trees)) for turn in self.turns_of(t, "tester")]

    def turns_of(self, t: int, role: Role) -> list[Turn]:
        """Return the turns of one role in the tree at position `t`, in the order of candidates or groups."""
        sizes = [1] * self.trees[t].n_candidates if role == "coder" else self._sizes(t)
        return [self._turn(t, role, n, m) for n, size in enumerate(sizes) for m in range(size)]

    def submit_suites(self, suites: Sequence[Tests], sizes: Sequence[Sequence[int]] | None = None) -> None:
        """Read, judge and score all suites, in the order of `tester_turns`.

        Args:
            suites: one per turn; with `sizes`, those that a driver has already, tree by tree, group by group.
            sizes: (T, G) how many suites each group of each tree has; None: one for each turn.

        Raises:
            UserError: the number of suites is wrong, or one is not a reply.
            ValueError: the number of groups of a tree is wrong.
            SandboxError: the sandbox cannot be used at all.
        """
        sizes = [self._sizes(t) for t in range(len(self.trees))] if sizes is None else sizes
        if [len(of_tree) for of_tree in sizes] != [tree.n_groups for tree in self.trees]:
            raise ValueError("expected one size for each group of every tree")
        rest = iter(_checked_replies("suites", suites, sum(map(sum, sizes)), Suite))
        groups = [tuple(tuple(islice(rest, size)) for size in of_tree) for of_tree in sizes]
        self._judge_trees({t: each for t, each in enumerate(groups) if any(each) or t not in self.judged})

    def _judge_trees(self, groups: Mapping[int, Sequence[Sequence[Tests]]]) -> None:
        """Judge and score trees with their (G, any number) suites, by position."""
        if not groups:
            return
        programs = self._read_programs()
        duels = [self._duel(self.trees[t], programs[t], suites) for t, suites in groups.items()]
        reports, failure = self._ask(self._judge.judge, duels)
        for (t, suites), report in zip(groups.items(), reports, strict=True):
            rewards = score_group(report, self._judge.rules) if report is not None else ()
            judged = JudgedTree(
                tree=self.trees[t],
                programs=programs[t].replies,
                suites=tuple(map(tuple, suites)),
                report=report,
                rewards=rewards,
                coder_rewards=np.full(self.trees[t].n_candidates, np.nan),
                tester_rewards=np.empty(0),
                failure=failure,
            )
            for n, of_candidate in enumerate(rewards):
                if not judged._lacks_reply(n):
                    judged.coder_rewards[n] = of_candidate.coder.value
            self.judged[t] = replace(judged, tester_rewards=judged.of_suites(attrgetter("value")))

    # -- both --

    def play(
        self,
        coder: Callable[[Sequence[Turn]], Sequence[Program]],
        tester: Callable[[Sequence[Turn]], Sequence[Tests]] | None = None,
    ) -> list[JudgedTree]:
        """Ask for the replies to all turns and return the judged trees.

        Args:
            coder: from turns to one program each.
            tester: from turns to one suite each; None where no tree has suites.

        Raises:
            UserError, SandboxError: as `submit_programs` and `submit_suites`.
        """
        self.submit_programs(coder(self.coder_turns()))
        if tester is not None:
            self.submit_suites(tester(self.tester_turns()))
        return self.results()

    def results(self) -> list[JudgedTree]:
        """Return one judged tree per tree, in order. If no tester has a turn, no suites need be submitted.

        Raises:
            RuntimeError: programs or suites have not been submitted.
        """
        self._read_programs()
        if len(self.judged) < len(self.trees):
            raise RuntimeError("submit_suites() must be called before results()")
        return [self.judged[t] for t in range(len(self.trees))]

    def give_up(self, why: str) -> None:
        """Mask all programs because an agent gave no reply: none runs again, and no tester gets a turn for one.

        Args:
            why: the detail of every candidate's report, so it must be the same in every process.
        """
        if self._programs is None:
            self.submit_programs([AgentUnavailable(why) for tree in self.trees for _ in range(tree.n_candidates)])
        else:
            check = CandidateCheck(Verdict.INTERNAL_ERROR, why)
            self._programs = [replace(each, early_checks=(check,) * len(each.replies)) for each in self._programs]
        self._judge_trees({t: ((),) * tree.n_groups for t, tree in enumerate(self.trees)})

    def fork(self, **options: Any) -> Rounds:
        """Return another round of the same programs, for other suites; it does not read and check them again.

        Args:
            options: fields of `RoundOptions` that differ.

        Raises:
            RuntimeError: no programs have been submitted.
        """
        if self._programs is None:
            raise RuntimeError("submit_programs() must be called before fork()")
        other = Rounds(self.trees, self._judge, replace(self._options, **options))
        other._programs, other.judged = self._programs, dict(self.judged)
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        raise UserError("a round stays in its process: pickle an environment before its first reset")

    # -- implementation --

    def _read_programs(self) -> list[_Programs]:
        if self._programs is None:
            raise RuntimeError("submit_programs() must be called first")
        return self._programs

    def _sizes(self, t: int) -> list[int]:
        """Return the number of tester turns of each group."""
        tree = self.trees[t]
        if tree.suites_per is SuitesPer.PROBLEM or not tree.n_suites:
            return [tree.n_suites] * tree.n_groups
        return [tree.n_suites if check is None else 0 for check in self._read_programs()[t].early_checks]

    def _turn(self, t: int, role: Role, n: int, m: int) -> Turn:
        tree, view, shown, feedback = self.trees[t], self._options.tester_view, "", ""
        if tree.trajectories:
            past = tree.trajectories[n]
            shown, feedback = ("", past.tester_feedback) if role == "tester" else (past.program, past.coder_feedback)
        if role == "tester" and view in ("", "white_box") and tree.suites_per is SuitesPer.CANDIDATE:
            shown = self._read_programs()[t].candidates[n].program
        if self._options.sample_of is None:
            number, later = tree.numbers[n], (tree.round,) if tree.round else ()
            name, seed, sample = f"{tree.name}-{number}-{m}", (*tree.seed, _ROLES.index(role), number, m, *later), {}
        else:
            number = self._options.sample_of(n, m)
            name, seed, sample = f"{tree.problem.id}/{number}", (), {"sample": number}
        info = turn_info(
            tree.problem,
            episode_id=name,
            role=role,
            round_=tree.round,
            tests_per_suite=self._judge.rules.tests_per_suite,
            program=shown,
            tester_view=view,
        )
        return Turn(observation_of(tree.problem, tree.round, shown, feedback), info | sample, seed, t, n, m)

    def _ask(self, question: Callable[[list[_T]], Sequence[_U]], about: list[_T]) -> tuple[Sequence[_U | None], str]:
        """Return what the judge says, or Nones and why the sandbox cannot be used if that is masked."""
        begun = time.perf_counter()
        try:
            return question(about), ""
        except SandboxError as error:
            if not self._options.masks_sandbox_errors:
                raise
            return [None] * len(about), str(error)
        finally:
            self.judge_s += time.perf_counter() - begun

    def _duel(self, tree: Tree, read: _Programs, groups: Sequence[Sequence[Tests]]) -> Duel:
        rules = self._judge.rules
        suites = list[tuple[Suite, ...]]()
        for group in groups:
            texts = [reply if isinstance(reply, str | Suite) else "" for reply in group]
            bounds = tree.problem, rules.reading, rules.tests_per_suite
            suites.append(tuple([it if isinstance(it, Suite) else suite_of(it, *bounds) for it in texts]))
        if shares_suites := tree.suites_per is SuitesPer.PROBLEM:
            suites = suites * tree.n_candidates
        return Duel(
            tree.problem, read.candidates, tuple(suites), tree.replayed, shares_suites, early_checks=read.early_checks
        )


def _checked_replies(name: str, replies: Sequence[_T], n_turns: int, kind: type) -> list[_T]:
    """Return the replies as a list.

    Raises:
        UserError: their number is wrong, or one is neither text, nor what was read from one, nor unavailable.
    """
    (listed,) = as_lists(**{name: replies})
    if len(listed) != n_turns:
        raise UserError(f"expected {name} for {n_turns} turns, got {len(listed)}")
    for reply in listed:
        if not isinstance(reply, str | kind | AgentUnavailable):
            fault = f"{type(reply).__name__} ({reply!r:.100})"
            raise UserError(f"{name} must be texts, {kind.__name__} or AgentUnavailable, got {fault}")
    return listed


def candidate_of(reply: Program, problem: Problem, rules: Ruleset) -> Candidate:
    """Return the candidate read from a reply; an empty one if there was no reply."""
    if not isinstance(reply, str):
        return reply if isinstance(reply, Candidate) else Candidate("")
    bound = rules.max_program_bytes
    return read_candidate(reply, rules.reading, entry_point=problem.defined, max_program_bytes=bound)


def suite_of(reply: str, problem: Problem, reading: Reading, tests_per_suite: int | None = None) -> Suite:
    """Return the suite read from a reply; see `read_suite`."""
    return read_suite(
        reply,
        reading,
        entry_point=problem.entry_point,
        tests_per_suite=tests_per_suite,
        output=problem.printed,
        forms=problem.calls,
        imports=_known_imports(problem.imports, problem.statement),
    )


@remembered_up_to(16_384)
def _known_imports(imports: str, statement: str) -> str:
    return f"{imports_of(imports)}\n{imports_of(statement)}"
