"""The rewards of other papers on this game, for comparison under one roof (method.md 4).

Each is the paper's formula on what a report of ours holds. What all of them share, unlike their papers: one trusted
solution says which predictions are right; a suite holds up to K tests, of which a paper with one test per reply is the
case K = 1; a candidate that does not load is no evidence about a suite; no Mistake Book. docs/rules.md has the
formulas side by side and what else differs.

A *right* case is a valid one whose prediction was right (or not asked for); a *written* one any attempt at a test.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from math import isnan
from statistics import fmean

from codea1_env.facts.verdicts import CandidateReport, CaseReport, SuiteReport, Verdict
from codea1_env.rules.reading.literals import LiteralError, encoded_literal
from codea1_env.rules.reward_parts import (
    MASKED,
    CandidateRewards,
    Reward,
    RewardPart,
    invalid_candidate,
    n_credited,
    n_passed,
    n_right,
    n_written,
    no_evidence,
    pass_rate,
    right_cases,
)
from codea1_env.rules.ruleset import Comparison, Ruleset
from codea1_env.rules.validation import values_equal

SuiteColumn = Sequence[SuiteReport]
"""One suite against each of some candidates."""


def utrl(report: CandidateReport, rules: Ruleset) -> CandidateRewards:
    """UTRL (arXiv 2508.21107): discrimination, a validity that short suites cannot have, and format; `reward.utrl`.

    coder = 0.9 * pass rate on right cases (mean over suites that have some) + 0.1 * format;
    tester = 0.85 * [some right case fails] + 0.05 * right / max(K, written) + 0.1 * format.
    Format is 1 if the reply holds a program, or a test. The paper's discrimination is the share of sampled programs
    that are beaten: the mean of this reward over a problem's candidates, where they share the suite.
    """
    weights = rules.reward.utrl
    if not report.is_valid:
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
    """ATGen (arXiv 2510.14635): right outputs, attacks that count with a right output only, and format, a third each;
    `reward.atgen`.

    Each part of a written test is 1 or -0.5, and the tester gets the mean over its written tests: 1 for a right one
    that beats the program, 0.5 for another right one, 0 for a wrong one; -0.5 for a reply without any test. The
    paper's coder is not trained; ours gets its pass rate on right cases, `no_evidence` without any.
    """
    if not report.is_valid:
        return invalid_candidate(report, rules)
    weights, testers = rules.reward.atgen, []
    for suite in report.suites:
        written = n_written(suite)
        testers.append(
            Reward.of(
                RewardPart("io_accuracy", _met(n_right(suite.cases), written, weights.failed), weights.io_accuracy),
                RewardPart("attack", _met(n_credited(suite.cases), written, weights.failed), weights.attack),
                RewardPart("format", 1.0 if written else weights.failed, weights.format),
            )
        )
    passed = _right_pass_rate(report)
    if passed is None:
        return CandidateRewards(no_evidence(rules), tuple(testers))
    return CandidateRewards(Reward.of(RewardPart("pass_new", passed, 1.0)), tuple(testers))


def cure(group: Sequence[CandidateReport], rules: Ruleset) -> list[CandidateRewards]:
    """CURE (arXiv 2506.03136): a test is worth the wrong programs that it tells from right ones.

    coder = pass rate on the golden tests, masked where unknown. With W the valid candidates that do not pass all
    golden tests, a right case is worth the share of W that fails it, a wrong one minus the share of W that passes it
    *as it was written*, and a suite the mean over its written tests (0 for those that the solution does not even
    run); 0 where W is empty, masked where nothing is known of any candidate.

    A lone candidate is W, or W is empty. The paper has no solution: to it a test is right if all right programs pass
    it, so that problems without one are skipped; here they are not. Whether a candidate passes a wrong test is told by
    its recorded answer: literals of up to 300 characters.
    """
    wrong = [each for each in group if each.is_valid and (each.golden_pass_rate or 0.0) < 1.0 and _is_known(each)]
    any_known = any(_is_known(each) for each in group if each.is_valid)

    def worth(column: SuiteColumn) -> Reward:
        if not any_known:
            return MASKED
        shares = [_told_apart(suite, rules.comparison) for suite in column]
        return Reward.of(RewardPart("wrong_programs_told", fmean(shares) if shares else 0.0, 1.0))

    return [
        CandidateRewards(_golden_coder(report, rules), testers)
        for report, testers in zip(group, _shared_testers(group, wrong, worth), strict=True)
    ]


def learnability(group: Sequence[CandidateReport], rules: Ruleset) -> list[CandidateRewards]:
    """Absolute Zero's rewards (arXiv 2505.03335) with the tester as proposer and the coder as solver.

    With p the share of right cases passed by the valid candidates, all together, a right case is worth 1 - p if
    0 < p < 1, else 0: neither what everybody solves nor what nobody does teaches anything. A wrong one is worth -0.5, a
    suite the mean over its written tests, and a reply without any test -1. coder: 1 per suite whose right cases it all
    passes, else -0.5, mean over suites that have some; `invalid_candidate` if it does not load.

    The constants are `reward.learnability`. In the paper p is of one task over 8 tries, as here with K = 1. A lone
    candidate's p is its pass rate.
    """
    valid, constants = [report for report in group if report.is_valid], rules.reward.learnability

    def worth(column: SuiteColumn) -> Reward:
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
        for report, testers in zip(group, _shared_testers(group, valid, worth), strict=True)
    ]


# -- what they share -------------------------------------------------------------------------------


def _shared_testers(
    group: Sequence[CandidateReport], witnesses: Sequence[CandidateReport], worth: Callable[[SuiteColumn], Reward]
) -> list[tuple[Reward, ...]]:
    """Return, per candidate, what its suites are worth by the witnesses' word; nothing beside an invalid one."""
    n_suites = len(group[0].suites) if group else 0
    rewards = tuple(worth([each.suites[number] for each in witnesses]) for number in range(n_suites))
    return [rewards if each.is_valid else (Reward.of(),) * n_suites for each in group]


def _right_pass_rate(report: CandidateReport) -> float | None:
    """Return the mean, over suites with right cases, of the share of them that the candidate passes."""
    rates = [rate for suite in report.suites if (rate := pass_rate(right_cases(suite.cases))) is not None]
    return fmean(rates) if rates else None


def _met(n_met: int, n_all: int, failed: float) -> float:
    return (n_met + failed * (n_all - n_met)) / n_all if n_all else failed


def _is_known(report: CandidateReport) -> bool:
    return report.golden_pass_rate is not None


def _golden_coder(report: CandidateReport, rules: Ruleset) -> Reward:
    if not report.is_valid:
        return invalid_candidate(report, rules).coder
    if report.golden_pass_rate is None:
        return MASKED
    return Reward.of(RewardPart("golden_pass_rate", report.golden_pass_rate, 1.0))


def _told_apart(suite: SuiteReport, comparison: Comparison) -> float:
    """Return what a suite is worth by one wrong program: right cases it fails, less wrong ones it passes, per test."""
    written = n_written(suite)
    if not written:
        return 0.0
    n_misled = sum(_passes_as_written(case, comparison) for case in suite.cases)
    return (n_credited(suite.cases) - n_misled) / written


def _passes_as_written(report: CaseReport, comparison: Comparison) -> bool:
    """Whether the candidate's answer is the tester's own, which the solution contradicts."""
    case = report.case
    if case.prediction_right is not False or report.verdict is not Verdict.WRONG_ANSWER:
        return False
    predicted, actual = case.case.predicted or _encoded(case.case.prediction or ""), _encoded(report.actual)
    return predicted is not None and actual is not None and values_equal(predicted, actual, comparison)


def _encoded(literal: str) -> bytes | None:
    try:
        return encoded_literal(ast.parse(literal, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError, LiteralError):
        return None


def _solver(report: CandidateReport, rules: Ruleset) -> Reward:
    if not report.is_valid:
        return invalid_candidate(report, rules).coder
    rates = [rate for suite in report.suites if (rate := pass_rate(right_cases(suite.cases))) is not None]
    if not rates:
        return no_evidence(rules)
    wrong = rules.reward.learnability.wrong
    return Reward.of(RewardPart("solved", fmean(1.0 if rate == 1.0 else wrong for rate in rates), 1.0))
