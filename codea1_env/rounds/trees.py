"""Trees: one problem with N candidates and M suites, before and after it is judged. Pure.

A round of the two-agent game is a tree of one candidate and one suite. A GRPO group, the samples of an evaluation and a
matrix of programs and suites are larger trees. `codea1_env.rounds.rounds` plays them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf
from operator import attrgetter
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from codea1_env.errors import AgentUnavailable, UserError, of_type, whole_number
from codea1_env.facts.submissions import Candidate, Suite
from codea1_env.facts.verdicts import ProblemReport, ValidCase
from codea1_env.problems.problem import Problem
from codea1_env.rules.reward_parts import CandidateRewards, Reward
from codea1_env.rules.rewards import score_group
from codea1_env.rules.ruleset import Ruleset

Program: TypeAlias = str | Candidate | AgentUnavailable
"""A coder's raw reply, a program that was read before, or the reason why there is none; that is masked."""
Tests: TypeAlias = str | Suite | AgentUnavailable
"""A tester's raw reply, a suite that was read before, or the reason why there is none."""
Rewards = NDArray[np.float64]

_MAX_NAMED = 5


class SuitesPer(StrEnum):
    """For what a suite is written, and therefore which suites form a group."""

    CANDIDATE = "candidate"
    """M suites for each candidate, run against it only."""
    PROBLEM = "problem"
    """M suites per problem, written without the programs and run against every candidate; one group (the paper's
    self-play)."""


@dataclass(frozen=True, slots=True)
class Tree:
    """The shape of what is played about one problem.

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

    def __post_init__(self) -> None:
        of_type("the problem of a tree", self.problem, Problem)
        whole_number("n_candidates", self.n_candidates, most=inf)
        whole_number("n_suites", self.n_suites, most=inf, least=0)

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
        answered = tuple(report for n, report in enumerate(self.report.candidates) if not self._lacks_reply(n))
        if not answered or any(report.has_internal_error for report in answered):
            return None
        return replace(self.report, candidates=answered)

    def _lacks_reply(self, candidate: int) -> bool:
        """Whether the program is missing, or loads and a suite of its group is missing, which might have failed it."""
        loads = self.report is not None and self.report.candidates[candidate].is_valid
        replies = (self.programs[candidate], *(self.group_of(candidate) if loads else ()))
        return any(map(is_unavailable, replies))

    def group_of(self, candidate: int) -> tuple[Tests, ...]:
        """Return the suites that a candidate ran, as they were submitted."""
        return self.suites[candidate if self.tree.suites_per is SuitesPer.CANDIDATE else 0]

    def of_suites(self, number: Callable[[Reward], float]) -> Rewards:
        """Return a number of each suite's reward, e.g. one of its parts, as `tester_rewards` has their values.

        Args:
            number: the reward; nan if it is masked.
        """
        return _of_suites(self.tree, self.suites, self.report, self.rewards, number)

    def why_masked(self, candidate: int) -> str:
        """Return why a reward of a candidate or of a suite of its group is nan; call it only if one is."""
        for reply in (self.programs[candidate], *self.group_of(candidate)):
            if is_unavailable(reply):
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


def is_unavailable(reply: Program | Tests) -> bool:
    """Whether a reply is missing."""
    return isinstance(reply, AgentUnavailable)


def scored_tree(
    tree: Tree,
    programs: Sequence[Program],
    suites: Sequence[Sequence[Tests]],
    report: ProblemReport | None,
    rules: Ruleset,
    failure: str = "",
) -> JudgedTree:
    """Return a tree with its rewards under the given rules.

    Args:
        tree: what was played.
        programs: (N,) the submitted programs.
        suites: (G, M) the submitted suites.
        report: what the judge found; None if the sandbox could not be used.
        rules: the reward scheme and its parameters.
        failure: why the sandbox could not be used.
    """
    rewards = score_group(report, rules) if report is not None else ()
    found = JudgedTree(
        tree=tree,
        programs=tuple(programs),
        suites=tuple(map(tuple, suites)),
        report=report,
        rewards=rewards,
        coder_rewards=np.full(tree.n_candidates, np.nan),
        tester_rewards=_of_suites(tree, suites, report, rewards, attrgetter("value")),
        failure=failure,
    )
    for n in range(len(rewards)):
        if not found._lacks_reply(n):
            found.coder_rewards[n] = rewards[n].coder.value
    return found


def _of_suites(
    tree: Tree,
    suites: Sequence[Sequence[Tests]],
    report: ProblemReport | None,
    rewards: Sequence[CandidateRewards],
    number: Callable[[Reward], float],
) -> Rewards:
    """Return (G, M) numbers of rewards."""
    found = np.full((tree.n_candidates, max([tree.n_suites, *map(len, suites)])), np.nan)
    for n, each in enumerate(rewards):
        found[n, : len(each.testers)] = [number(reward) for reward in each.testers]
    if tree.suites_per is SuitesPer.PROBLEM:
        if report is not None:  # an invalid program is not evidence about a suite
            found[[not each.is_valid for each in report.candidates]] = np.nan
        found = mean_over_candidates(found)[np.newaxis]
    for g, group in enumerate(suites):
        found[g, [m for m, reply in enumerate(group) if is_unavailable(reply)]] = np.nan
    return found


def mean_over_candidates(rewards: Rewards) -> Rewards:
    """Return the reward of each suite that all candidates of a problem have run.

    arXiv 2603.15611 does not define it for self-play; the mean over valid candidates is the natural choice.

    Args:
        rewards: shape (..., N, M), of M suites against each of N candidates; nan where a candidate is invalid or the
            reward masked.

    Returns:
        Shape (..., M): means over the values that are not nan; nan if there are none.
    """
    rewards = np.asarray(rewards, dtype=np.float64)
    known = ~np.isnan(rewards)
    n_known = known.sum(axis=-2)
    total = np.where(known, rewards, 0.0).sum(axis=-2)
    return np.where(n_known > 0, total / np.maximum(n_known, 1), np.nan)
