"""Rewards, their parts, and the counts of a report that their formulas use."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from codea1_env.facts.verdicts import CandidateReport, CaseReport, SuiteReport, Verdict
from codea1_env.rules.ruleset import Ruleset

Rewards = NDArray[np.float64]
"""Rewards of several rollouts, nan where masked."""


@dataclass(frozen=True, slots=True)
class RewardPart:
    """One term of a reward."""

    name: str
    value: float
    weight: float

    @property
    def weighted(self) -> float:
        """The contribution to the reward."""
        return self.weight * self.value


@dataclass(frozen=True, slots=True)
class Reward:
    """A reward and its terms: the reward is their weighted sum. A masked one is nan and has no terms."""

    value: float
    parts: tuple[RewardPart, ...]

    @classmethod
    def of(cls, *parts: RewardPart) -> Reward:
        """Sum the parts, in their order."""
        return cls(sum((part.weighted for part in parts), 0.0), parts)

    def weighted(self) -> dict[str, float]:
        """Return the weighted terms by name; they add up to the reward."""
        return {part.name: part.weighted + 0.0 for part in self.parts}  # + 0.0 turns -0.0 into 0.0

    def part(self, name: str) -> float:
        """Return the value of a term, before it is weighted; 0 without such a term, nan if the reward is masked."""
        return math.nan if self.masked else sum((part.value for part in self.parts if part.name == name), 0.0)

    @property
    def masked(self) -> bool:
        """True iff the reward is unknown: leave it out of every mean and every gradient."""
        return math.isnan(self.value)


MASKED = Reward(math.nan, ())
"""The reward where our own failure hides the verdicts, or where nothing was tested and the rules mask that."""


@dataclass(frozen=True, slots=True)
class CandidateRewards:
    """Rewards of one candidate and of the suites written for it."""

    coder: Reward
    testers: tuple[Reward, ...]
    """(M,) one per suite."""


# -- counts ----------------------------------------------------------------------------------------


def n_passed(reports: tuple[CaseReport, ...]) -> int:
    """Return how many cases the candidate passed."""
    return sum(report.verdict is Verdict.PASSED for report in reports)


def n_failed(reports: tuple[CaseReport, ...]) -> int:
    """Return how many cases are evidence against the candidate."""
    return sum(report.verdict.is_failure for report in reports)


def n_credited(reports: tuple[CaseReport, ...]) -> int:
    """Return how many cases the candidate failed whose prediction was right (or not required)."""
    return sum(report.is_right_kill for report in reports)


def rewarded_cases(reports: tuple[CaseReport, ...], rules: Ruleset) -> tuple[CaseReport, ...]:
    """Return the cases that can earn their tester a reward: all, or those that the statement does not answer."""
    if rules.reward.pays_examples:
        return reports
    return tuple(report for report in reports if not report.case.is_example)


def right_cases(reports: tuple[CaseReport, ...]) -> tuple[CaseReport, ...]:
    """Return the cases whose prediction was right (or not required)."""
    return tuple(report for report in reports if report.case.prediction_right is not False)


def n_right(reports: tuple[CaseReport, ...]) -> int:
    """Return how many `right_cases` there are."""
    return sum(report.case.prediction_right is not False for report in reports)


def validity(suite: SuiteReport, n_requested: int) -> float:
    """Return the share of the requested cases of a suite that are right, at most 1."""
    return min(1.0, n_right(suite.cases) / n_requested)


def n_written(suite: SuiteReport) -> int:
    """Return the number of attempts at a test: kept cases and counted faults. A corrected case counts once."""
    corrected = len(suite.cases) - n_right(suite.cases)
    return len(suite.cases) + suite.suite.n_invalid - corrected


def with_decided(report: CandidateReport) -> CandidateReport:
    """Return a report without the replayed cases that say nothing about any program."""
    decided = tuple(case for case in report.replayed if case.verdict not in (Verdict.DENIED, Verdict.UNDECIDED))
    return report if len(decided) == len(report.replayed) else replace(report, replayed=decided)


def pass_rate(reports: tuple[CaseReport, ...]) -> float | None:
    """Return the share of cases passed, in [0, 1]; None without cases."""
    return n_passed(reports) / len(reports) if reports else None


def right_pass_rates(report: CandidateReport) -> list[float]:
    """Return the candidate's pass rate on the right cases of each suite that has some."""
    return [rate for suite in report.suites if (rate := pass_rate(right_cases(suite.cases))) is not None]


def golden_reward(report: CandidateReport, rules: Ruleset) -> Reward:
    """Return the pass rate on the golden tests; masked where unknown, `invalid_candidate` if it does not load."""
    if not report.loads:
        return invalid_candidate(report, rules).coder
    if report.golden_pass_rate is None:
        return MASKED
    return Reward.of(RewardPart("golden_pass_rate", report.golden_pass_rate, 1.0))


def invalid_candidate(report: CandidateReport, rules: Ruleset) -> CandidateRewards:
    """Return the rewards for a candidate that does not load: 0 for its testers (release reward.py:905-913)."""
    coder = Reward.of(RewardPart("invalid_candidate", rules.reward.invalid_candidate, 1.0))
    return CandidateRewards(coder, (Reward.of(),) * len(report.suites))


def alpha_with_book(alpha: float) -> float:
    """Return the weight of validity without replays that ranks suites as `alpha` does with replays.

    Eq. 3 halves the weight of new failures, and replays add a constant: alpha / (alpha + (1 - alpha) / 2). It holds for
    the groups that docs/rules.md describes.

    Args:
        alpha: in [0, 1].
    """
    return 2 * alpha / (1 + alpha)


def no_evidence(rules: Ruleset) -> Reward:
    """Return the coder's reward where no case is evidence about its program."""
    value = rules.reward.no_evidence
    return MASKED if value == "masked" else Reward.of(RewardPart("no_evidence", value, 1.0))


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
