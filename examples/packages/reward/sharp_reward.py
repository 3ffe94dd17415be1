"""A reward in a package of its own: copy the folder, change the names, and replace the formula."""

from collections.abc import Sequence

from codea1_env.facts.verdicts import CandidateReport
from codea1_env.rules.rewards import CandidateRewards, Reward, RewardPart
from codea1_env.rules.ruleset import Ruleset


def sharp(group: Sequence[CandidateReport], rules: Ruleset) -> list[CandidateRewards]:
    """Pay a tester for every case that the program fails, and a coder for the rest."""
    return [_rewards(report, rules.tests_per_suite) for report in group]


def _rewards(report: CandidateReport, n_tests: int) -> CandidateRewards:
    failed = [sum(case.verdict.is_failure for case in suite.cases) / n_tests for suite in report.suites]
    survived = 1 - sum(failed) / max(len(failed), 1) if report.loads else 0.0
    testers = tuple(Reward.of(RewardPart("failed", share, 1.0)) for share in failed)
    return CandidateRewards(Reward.of(RewardPart("survived", survived, 1.0)), testers)
