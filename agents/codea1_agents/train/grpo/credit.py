"""Which tokens of a suite are paid for what: `training.credit`. Pure functions of verdicts and arrays.

A test is an input and an answer. Who pays whole tests cannot have a tester that neither lies nor retreats: if an aimed
test earns more than a safe one for every risk of a wrong answer, then a right answer earns nothing. The way out is to
pay twice. The solution fills in the answer anyway, so whether the filled test fails the program does not depend on what
the tester predicted: that pays the tokens of the input. Whether the prediction is right pays the tokens of the answer.
docs/rules.md has the theorem.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from codea1_agents.train.grpo.advantages import Advantages, group_advantages
from codea1_agents.train.grpo.hyperparameters import AdvantageSettings, CreditForm, OtherText
from codea1_env.errors import UserError
from codea1_env.facts.submissions import COUNTED_AS_INVALID, RejectionReason, Span, TestCase, Written
from codea1_env.facts.verdicts import CaseReport, SuiteReport
from codea1_env.rounds.rounds import JudgedTree, SuitesPer
from codea1_env.rules.rewards import rewarded_cases
from codea1_env.rules.ruleset import CreditRules, Reading, RewardRules, RewardScheme, Ruleset, Validation

_BEFORE_A_SIDE = " \t([{"
_WHOLE = Span(0, sys.maxsize)
_UNKNOWN = frozenset(
    {RejectionReason.OPAQUE_VALUE, RejectionReason.TOO_MANY_CALLS, RejectionReason.UNKNOWABLE, RejectionReason.TOO_MANY}
)
"""Rejections that say nothing about the tester, so that a suite of which nothing else is left is not a bad one."""


@dataclass(frozen=True, slots=True)
class PaidTest:
    """What one test of a suite is paid for."""

    written: Written
    kill: float
    """Whether the candidate fails the test with the solution's answer, 0 or 1; for a suite that several candidates ran,
    the share of them. nan: unknown, and compared with nothing."""
    right: float
    """Whether the predicted answer is right, 0 or 1; nan: not compared."""
    pay: float
    """alpha * v + (1 - alpha) * v * kill, where v says whether the answer is right or not asked for; nan: unknown."""


@dataclass(frozen=True, slots=True)
class CreditedTest:
    """The advantages of the tokens of one test."""

    written: Written
    input: float
    """Of its input, and of what else its statement consists of."""
    answer: float


@dataclass(frozen=True, slots=True)
class GroupCredit:
    """The credit of the tests of a group of M suites."""

    suites: tuple[tuple[CreditedTest, ...], ...]
    """(M, any number); () for a suite that is masked."""
    spread: float
    """Variance of what is compared, 0 if nothing tells the tests apart."""


def require_credit(rules: Ruleset, settings: AdvantageSettings) -> None:
    """Check that rules and settings say how single tests are paid.

    Raises:
        UserError: they do not, or say something that would mean nothing.
    """
    credit = settings.credit
    if credit == "reply":
        if settings.other_text != "nothing":
            raise UserError("other_text: with credit='reply' all text has the advantage of the reply")
        return
    where = f"credit={credit!r}"
    if settings.advantages != "sum":
        raise UserError(
            f"{where} needs advantages='sum', got {settings.advantages!r}, which compares parts of whole replies"
        )
    if rules.reward.scheme != RewardScheme.FIXED or rules.reward.credit != CreditRules():
        raise UserError(
            f"{where} pays single tests by the formula of scheme 'fixed' with reward.credit as by default; "
            f"rules {rules.name} have others"
        )
    if rules.reading is Reading.RELEASE:
        raise UserError(f"{where} needs to know where tests stand in a reply, which reading='release' does not")
    if rules.validation is not Validation.FILL:
        raise UserError(
            f"{where} needs validation='fill': a test is run with the solution's answer, whatever was predicted; "
            f"rules {rules.name} have {str(rules.validation)!r}"
        )
    if credit == "block" and rules.reward.alpha != RewardRules().alpha:
        raise UserError(
            f"{where} compares failures with failures and right answers with right answers, so that reward.alpha "
            f"({rules.reward.alpha}) means nothing; leave it out"
        )


def credit_of_groups(
    judged: JudgedTree, rewards: NDArray[np.float64], rules: Ruleset, settings: AdvantageSettings
) -> list[GroupCredit]:
    """Return the credit of each group of suites of a tree.

    Args:
        judged: the tree.
        rewards: (G, M), of the suites; nan where one is masked, so that its tests are compared with nothing.
        rules: of the game.
        settings: what tests are paid for.
    """
    groups = []
    for g, of_group in enumerate(rewards):
        candidates = judged.report.candidates if judged.report is not None else ()
        if judged.tree.suites_per is SuitesPer.CANDIDATE:
            candidates = candidates[g : g + 1]
        suites = [
            () if np.isnan(reward) else paid_tests([each.suites[m] for each in candidates if each.loads], rules)
            for m, reward in enumerate(of_group)
        ]
        groups.append(group_credit(suites, settings.credit))
    return groups


def by_tests(groups: Sequence[GroupCredit], is_known: NDArray[np.bool_], *, keeps_flat: bool = False) -> Advantages:
    """Return the advantages of suites whose tests are paid: the means over the sides of their tests.

    Args:
        groups: (G,)
        is_known: (G, M), False for a suite that is masked.
        keeps_flat: as in `group_advantages`.
    """
    trains = np.array([group.spread > 0 or keeps_flat for group in groups])[:, np.newaxis] & is_known
    means = [[fmean(sides) if (sides := _credits(suite)) else 0.0 for suite in group.suites] for group in groups]
    return Advantages(np.where(trains, np.array(means).reshape(is_known.shape), 0.0), trains)


def paid_tests(reports: Sequence[SuiteReport], rules: Ruleset) -> list[PaidTest]:
    """Return what the tests of a suite are paid for.

    A test that counts as a failed attempt (`COUNTED_AS_INVALID`: it does not parse, calls nothing, repeats another one,
    holds whatever the program does, ...) has no kill, and no answer to compare. So has a test that the statement's
    examples answer, where the rules do not pay for these, and a property that is false: its claim is part of its input.
    Failed attempts beyond K count as one. A suite without any test is one test without a kill:
    otherwise text that is no test would be better than a test that misses.

    Args:
        reports: of the suite against each candidate that ran it and loads.
        rules: as `require_credit` accepts.
    """
    if not reports:
        return []
    cases: dict[TestCase, list[CaseReport]] = {}
    for case in chain.from_iterable(report.cases for report in reports):
        cases.setdefault(case.case.case, []).append(case)
    tests = [_pay_test(of_case, rules) for of_case in cases.values() if of_case[0].case.case.written is not None]
    rejections = reports[0].suite.rejections
    corrected = Counter(
        of_case[0].case.case.written for of_case in cases.values() if of_case[0].case.prediction_right is False
    )
    failed: list[Written] = []
    for rejection in rejections:
        if rejection.written is None or rejection.reason not in COUNTED_AS_INVALID:
            continue
        if rejection.reason is RejectionReason.WRONG_PREDICTION:
            if corrected[rejection.written]:
                corrected[rejection.written] -= 1
            else:  # a tolerance, which is part of the input, and which the solution's value cannot fill
                tests.append(PaidTest(rejection.written, 0.0, 0.0, 0.0))
        else:
            failed.append(rejection.written)
    most = rules.tests_per_suite
    if len(failed) > most:  # or much garbage would make each kill of the group the rarer, and be paid little for it
        last = tuple(span for written in failed[most - 1 :] for span in written.input)
        failed = [*failed[: most - 1], Written(failed[most - 1].statement, last, ())]
    tests += [PaidTest(written, 0.0, math.nan, 0.0) for written in failed]
    if not tests and not any(rejection.reason in _UNKNOWN for rejection in rejections):
        return [PaidTest(Written(_WHOLE, (_WHOLE,), ()), 0.0, math.nan, 0.0)]
    return tests


def _pay_test(of_case: Sequence[CaseReport], rules: Ruleset) -> PaidTest:
    valid = of_case[0].case
    assert valid.case.written is not None
    if not rewarded_cases((of_case[0],), rules):
        return PaidTest(valid.case.written, 0.0, math.nan, 0.0)
    evidence = [report.verdict.is_failure for report in of_case if report.verdict.is_evidence]
    kill = fmean(evidence) if evidence else math.nan
    right = math.nan if valid.prediction_right is None else float(valid.prediction_right)
    if valid.prediction_right is False and not valid.case.written.answer:
        kill = 0.0  # a false property: its claim is its input
    alpha = rules.reward.alpha
    pay = 0.0 if valid.prediction_right is False else alpha + (1 - alpha) * kill
    return PaidTest(valid.case.written, kill, right, pay)


def group_credit(suites: Sequence[Sequence[PaidTest]], by: CreditForm) -> GroupCredit:
    """Return the credit of the tests of a group: each compared with all tests of the group's suites.

    Args:
        suites: (M, any number); () for a suite that is masked.
        by: `test`: input and answer share the credit of `pay`. `block`: the input has that of `kill`, and the answer
            that of `right`. A credit is z(x) = (x - mean) / (std + 1e-6), as in `group_advantages`; 0 where x is not
            known.
    """
    tests = [test for suite in suites for test in suite]

    def compare(number: Callable[[PaidTest], float]) -> tuple[list[float], float]:
        values = np.array([number(test) for test in tests], dtype=np.float64)
        credits_ = group_advantages(values).values
        return credits_.tolist(), float(np.nanvar(values)) if credits_.any() else 0.0

    if by == "test":
        pays, spread = compare(lambda test: test.pay)
        found = [CreditedTest(test.written, each, each) for test, each in zip(tests, pays, strict=True)]
    else:
        kills, of_kills = compare(lambda test: test.kill)
        # A test that is all input has no token that is paid for being right.
        rights, of_rights = compare(lambda test: test.right if test.written.answer else math.nan)
        found = [CreditedTest(test.written, *each) for test, *each in zip(tests, kills, rights, strict=True)]
        spread = of_kills + of_rights
    of_tests = iter(found)
    return GroupCredit(tuple(tuple(islice(of_tests, len(suite))) for suite in suites), spread)


def token_advantages(
    text: str, starts: Sequence[int], tests: Sequence[CreditedTest], other_text: OtherText
) -> array[float]:
    """Return the advantage of each token of a suite.

    A token belongs to the block in which it begins. The blanks and brackets before a side belong to it, since a token
    usually begins with the blank before a word. The rest of a statement belongs to its input. What several tests share,
    such as a value that a table gives to all of them, has the mean of their credits.

    Args:
        text: the reply.
        starts: (n,) position of the first character of each token in `text` (`ChatFormat.starts`).
        tests: of the suite.
        other_text: of text that is no test: `nothing` (0), or `mean`, that of all sides of the suite's tests.

    Returns:
        (n,) 32-bit floats.
    """
    total, count = np.zeros(len(text) + 1), np.zeros(len(text) + 1)
    for test in tests:
        first, end = test.written.statement
        total[first:end] += test.input
        count[first:end] += 1
        sides = ((test.written.input, test.input), (test.written.answer, test.answer))
        for (begin, stop), credit in ((span, credit) for spans, credit in sides for span in spans):
            start = len(text[:begin].rstrip(_BEFORE_A_SIDE))
            within = slice(max(start, first), max(min(stop, end), start, first))
            total[start:stop] += credit
            count[start:stop] += 1
            total[within] -= test.input  # which the statement has counted
            count[within] -= 1
    other = fmean(_credits(tests)) if tests and other_text == "mean" else 0.0
    by_character = np.where(count > 0, total / np.maximum(count, 1), other)
    return array("f", by_character[np.minimum(starts, len(text))].tolist())


def _credits(tests: Sequence[CreditedTest]) -> list[float]:
    """Return the credits of the sides of tests; a test without an answer has one side."""
    return [credit for test in tests for credit in (test.input, *([test.answer] if test.written.answer else ()))]
