"""The rewards of other papers, applied to this game, for comparison.

Each function computes a paper's formula from a report. Four things differ from all of the papers: one trusted solution
decides which predictions are right; a suite holds up to K tests (K = 1 for a paper with one test per reply); a
candidate that does not load says nothing about a suite; there is no Mistake Book. docs/rules.md compares the formulas
and lists other differences.

A *right* case is a valid case whose prediction was right (or not required). A *written* case is any attempt at a test.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from math import isnan
from statistics import fmean

from codea1_env.facts.answers import Comparison
from codea1_env.facts.verdicts import CandidateReport, CaseReport, SuiteReport, Verdict
from codea1_env.python_text import UnreadableError, parse
from codea1_env.rules.reading.literals import LiteralError, encoded_literal
from codea1_env.rules.rewards import (
    MASKED,
    CandidateRewards,
    Reward,
    RewardPart,
    golden_reward,
    invalid_candidate,
    n_credited,
    n_passed,
    n_right,
    n_written,
    no_evidence,
    right_cases,
    right_pass_rates,
)
from codea1_env.rules.ruleset import RewardScheme, Ruleset

SuiteColumn = Sequence[SuiteReport]
"""The reports of one suite against each of several candidates."""


def utrl(report: CandidateReport, rules: Ruleset) -> CandidateRewards:
    """UTRL (arXiv 2508.21107): discrimination, validity and format; the weights are `reward.utrl`.

    coder = 0.9 * pass rate on right cases (mean over suites that have some) + 0.1 * format;
    tester = 0.85 * [some right case fails] + 0.05 * right / max(K, written) + 0.1 * format.
    The denominator of validity is at least K, so a short suite cannot reach 1. Format is 1 if the reply holds a
    program, or a test. In the paper, discrimination is the share of sampled programs that fail: the mean of this reward
    over a problem's candidates if they share the suite.
    """
    weights = rules.reward.utrl
    if not report.loads:
        has_program = float(report.verdict is not Verdict.NO_CODE)
        coder = Reward.of(
            RewardPart("pass_new", 0.0, weights.pass_rate), RewardPart("format", has_program, weights.program)
        )
        return CandidateRewards(coder, (Reward.of(),) * len(report.suites))
    testers = []
    for suite in report.suites:
        written = n_written(suite)
        testers.append(
            Reward.of(
                RewardPart("discrimination", float(n_credited(suite.cases) > 0), weights.discrimination),
                RewardPart("validity", n_right(suite.cases) / max(rules.tests_per_suite, written), weights.validity),
                RewardPart("format", float(written > 0), weights.format),
            )
        )
    passed = _right_pass_rate(report)
    value = no_evidence(rules).value if passed is None else passed
    if isnan(value):
        return CandidateRewards(MASKED, tuple(testers))
    coder = Reward.of(RewardPart("pass_new", value, weights.pass_rate), RewardPart("format", 1.0, weights.program))
    return CandidateRewards(coder, tuple(testers))


def atgen(report: CandidateReport, rules: Ruleset) -> CandidateRewards:
    """ATGen (arXiv 2510.14635): right outputs, attacks and format, a third each; the weights are `reward.atgen`.

    An attack counts only if its output is right. Each part of a written test is 1 or -0.5, and the tester gets the mean
    over its written tests: 1 for a right test that the program fails, 0.5 for another right one, 0 for a wrong one;
    -0.5 for a reply without any test. The paper does not train its coder. Here the coder gets its pass rate on right
    cases, or `no_evidence` if there are none.
    """
    if not report.loads:
        return invalid_candidate(report, rules)
    weights, testers = rules.reward.atgen, []
    for suite in report.suites:
        written = n_written(suite)
        testers.append(
            Reward.of(
                RewardPart(
                    "io_accuracy", _mean_part(n_right(suite.cases), written, weights.failed), weights.io_accuracy
                ),
                RewardPart("attack", _mean_part(n_credited(suite.cases), written, weights.failed), weights.attack),
                RewardPart("format", 1.0 if written else weights.failed, weights.format),
            )
        )
    passed = _right_pass_rate(report)
    if passed is None:
        return CandidateRewards(no_evidence(rules), tuple(testers))
    return CandidateRewards(Reward.of(RewardPart("pass_new", passed, 1.0)), tuple(testers))


def cure(group: Sequence[CandidateReport], rules: Ruleset) -> list[CandidateRewards]:
    """CURE (arXiv 2506.03136): a test is rewarded for the wrong programs that fail it.

    coder = pass rate on the golden tests, masked where unknown. W is the set of valid candidates that do not pass all
    golden tests. A right case gets the share of W that fails it. A wrong case gets minus the share of W that passes it
    *as it was written*. A suite gets the mean over its written tests (0 for those that the solution cannot run), 0 if W
    is empty, and is masked if no candidate's golden pass rate is known.

    A candidate alone is W, or W is empty. The paper has no solution: there a test is right if all right programs pass
    it, and problems without a right program are skipped. Here they are not. The recorded answer of a candidate decides
    whether it passes a wrong test; only literals of up to 300 characters are recorded.
    """
    wrong = [each for each in group if each.loads and (each.golden_pass_rate or 0.0) < 1.0 and _is_known(each)]
    any_known = any(_is_known(each) for each in group if each.loads)

    def suite_reward(column: SuiteColumn) -> Reward:
        if not any_known:
            return MASKED
        shares = [_discrimination(suite, rules.comparison) for suite in column]
        return Reward.of(RewardPart("wrong_programs_told", fmean(shares) if shares else 0.0, 1.0))

    return [
        CandidateRewards(golden_reward(report, rules), testers)
        for report, testers in zip(group, _shared_testers(group, wrong, suite_reward), strict=True)
    ]


def learnability(group: Sequence[CandidateReport], rules: Ruleset) -> list[CandidateRewards]:
    """Absolute Zero's rewards (arXiv 2505.03335) with the tester as proposer and the coder as solver.

    p is the pass rate of all valid candidates together on the suite's right cases. A right case gets 1 - p if
    0 < p < 1, else 0: the coder learns nothing from a task that every attempt or no attempt solves. A wrong case gets
    -0.5, a suite the mean over its written tests, and a reply without any test -1. The coder gets 1 for a suite whose
    right cases it all passes, else -0.5; its reward is the mean over suites that have right cases, or
    `invalid_candidate` if it does not load.

    The constants are `reward.learnability`. In the paper, p is the solve rate of one task over 8 attempts, which is
    K = 1 here. For a candidate alone, p is its pass rate.
    """
    valid, constants = [report for report in group if report.loads], rules.reward.learnability

    def suite_reward(column: SuiteColumn) -> Reward:
        written = max(map(n_written, column), default=0)
        if not written:
            return Reward.of(RewardPart("unreadable", constants.unreadable, 1.0))
        right = [case for suite in column for case in right_cases(suite.cases)]
        solved = n_passed(tuple(right)) / len(right) if right else 0.0
        share = len(right) / sum(map(n_written, column))
        return Reward.of(
            RewardPart("learnability", 1.0 - solved if 0.0 < solved < 1.0 else 0.0, share),
            RewardPart("invalid_cases", constants.invalid, 1.0 - share),
        )

    return [
        CandidateRewards(_solver(report, rules), testers)
        for report, testers in zip(group, _shared_testers(group, valid, suite_reward), strict=True)
    ]


# -- shared parts ----------------------------------------------------------------------------------


def _shared_testers(
    group: Sequence[CandidateReport], evidence: Sequence[CandidateReport], suite_reward: Callable[[SuiteColumn], Reward]
) -> list[tuple[Reward, ...]]:
    """Return, per candidate, the rewards of its suites computed from `evidence`; 0 for those of an invalid one."""
    n_suites = len(group[0].suites) if group else 0
    rewards = tuple(suite_reward([each.suites[number] for each in evidence]) for number in range(n_suites))
    return [rewards if each.loads else (Reward.of(),) * n_suites for each in group]


def _right_pass_rate(report: CandidateReport) -> float | None:
    """Return the mean of `right_pass_rates`; None without any."""
    rates = right_pass_rates(report)
    return fmean(rates) if rates else None


def _mean_part(n_met: int, n_all: int, failed: float) -> float:
    return (n_met + failed * (n_all - n_met)) / n_all if n_all else failed


def _is_known(report: CandidateReport) -> bool:
    return report.golden_pass_rate is not None


def _discrimination(suite: SuiteReport, comparison: Comparison) -> float:
    """Return how well a suite rejects one wrong program: (right cases failed - wrong ones passed) / written tests."""
    written = n_written(suite)
    if not written:
        return 0.0
    n_misled = sum(_passes_as_written(case, comparison) for case in suite.cases)
    return (n_credited(suite.cases) - n_misled) / written


def _passes_as_written(report: CaseReport, comparison: Comparison) -> bool:
    """Whether the candidate's answer equals the tester's prediction, which the solution contradicts."""
    case = report.case
    if case.prediction_right is not False or report.verdict is not Verdict.WRONG_ANSWER:
        return False
    predicted, actual = (
        case.case.predicted or _encode_literal(case.case.prediction or ""),
        _encode_literal(report.actual),
    )
    return predicted is not None and actual is not None and comparison.equal(predicted, actual)


def _encode_literal(literal: str) -> bytes | None:
    try:
        (statement,) = parse(literal).body
        return encoded_literal(statement.value) if isinstance(statement, ast.Expr) else None
    except (ValueError, UnreadableError, LiteralError):
        return None


def _solver(report: CandidateReport, rules: Ruleset) -> Reward:
    if not report.loads:
        return invalid_candidate(report, rules).coder
    rates = right_pass_rates(report)
    if not rates:
        return no_evidence(rules)
    wrong = rules.reward.learnability.wrong
    return Reward.of(RewardPart("solved", fmean(1.0 if rate == 1.0 else wrong for rate in rates), 1.0))


def _alone(
    formula: Callable[[CandidateReport, Ruleset], CandidateRewards],
) -> Callable[[Sequence[CandidateReport], Ruleset], list[CandidateRewards]]:
    return lambda group, rules: [formula(report, rules) for report in group]


FORMULAS = {
    RewardScheme.UTRL: _alone(utrl),
    RewardScheme.ATGEN: _alone(atgen),
    RewardScheme.CURE: cure,
    RewardScheme.LEARNABILITY: learnability,
}
"""From candidates that ran the same suites (or one alone) to their rewards; the last two compare candidates."""
