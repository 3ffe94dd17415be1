"""What rewards are made of, and what their formulas count in a report."""

from __future__ import annotations

import math
from dataclasses import dataclass

from codea1_env.facts.verdicts import CandidateReport, CaseReport, SuiteReport, Verdict
from codea1_env.rules.ruleset import Ruleset


@dataclass(frozen=True, slots=True)
class RewardPart:
    """One term of a reward."""

    name: str
    value: float
    weight: float


@dataclass(frozen=True, slots=True)
class Reward:
    """A reward and the terms whose weighted sum it is; nan without terms when masked."""

    value: float
    parts: tuple[RewardPart, ...]

    @classmethod
    def of(cls, *parts: RewardPart) -> Reward:
        """Sum the parts, in their order."""
        return cls(sum((part.weight * part.value for part in parts), 0.0), parts)

    def weighted(self) -> dict[str, float]:
        """Return the weighted terms by name; they add up to the reward."""
        return {part.name: part.weight * part.value + 0.0 for part in self.parts}  # + 0.0 makes -0.0 plain

    @property
    def masked(self) -> bool:
        """True iff nothing is known that it could pay: leave it out of every mean and every gradient."""
        return math.isnan(self.value)


MASKED = Reward(math.nan, ())
"""Stands where our own failure hides the truth, or where nothing was tested and the rules mask that."""


@dataclass(frozen=True, slots=True)
class CandidateRewards:
    """Rewards of one candidate and of the suites written for it."""

    coder: Reward
    testers: tuple[Reward, ...]
    """(N,) one per suite."""


# -- what the formulas count -----------------------------------------------------------------------


def n_passed(reports: tuple[CaseReport, ...]) -> int:
    """Return how many cases the candidate passed."""
    return sum(report.verdict is Verdict.PASSED for report in reports)


def n_failed(reports: tuple[CaseReport, ...]) -> int:
    """Return how many cases are evidence against the candidate."""
    return sum(report.verdict.is_failure for report in reports)


def n_credited(reports: tuple[CaseReport, ...]) -> int:
    """Return the failures on cases whose prediction was right (or not asked for)."""
    return sum(report.verdict.is_failure and report.case.prediction_right is not False for report in reports)


def paid_cases(reports: tuple[CaseReport, ...], rules: Ruleset) -> tuple[CaseReport, ...]:
    """Return the cases that may earn their tester something: all, or those that the statement does not answer."""
    if rules.reward.pays_examples:
        return reports
    return tuple(report for report in reports if not report.case.is_example)


def right_cases(reports: tuple[CaseReport, ...]) -> tuple[CaseReport, ...]:
    """Return the cases whose prediction was right (or not asked for)."""
    return tuple(report for report in reports if report.case.prediction_right is not False)


def n_right(reports: tuple[CaseReport, ...]) -> int:
    """Return how many of these there are."""
    return sum(report.case.prediction_right is not False for report in reports)


def n_written(suite: SuiteReport) -> int:
    """Return the attempts at a test: kept cases and counted faults; a corrected case is both and counts once."""
    corrected = len(suite.cases) - n_right(suite.cases)
    return len(suite.cases) + suite.suite.n_invalid - corrected


def pass_rate(reports: tuple[CaseReport, ...]) -> float | None:
    """Return the share of cases passed, in [0, 1]; None of no cases."""
    return n_passed(reports) / len(reports) if reports else None


def invalid_candidate(report: CandidateReport, rules: Ruleset) -> CandidateRewards:
    """Return the rewards where the candidate does not load: nothing that a suite could show (release R:905-913)."""
    coder = Reward.of(RewardPart("invalid_candidate", rules.reward.invalid_candidate, 1.0))
    return CandidateRewards(coder, (Reward.of(),) * len(report.suites))


def no_evidence(rules: Ruleset) -> Reward:
    """Return the coder's reward where no case says anything about its program."""
    value = rules.reward.no_evidence
    return MASKED if value == "masked" else Reward.of(RewardPart("no_evidence", value, 1.0))
