"""Pays of single tests: formulas for whole tests, to compare with credit per block (`train.grpo.credit`).

A pay sees a test after it is judged; alpha is the weight of validity. All but `baseline_per_input` depend on nothing
but whether the test kills and is right, so the theorem of docs/rules.md holds for them: if they pay for every better
aim, however seldom its answer is right, they pay nothing for being right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JudgedTest:
    """The facts about a test that is no duplicate; all in [0, 1]."""

    kill: float
    """Whether the program fails it with the solution's answer."""
    right: float
    """Whether the predicted answer is right."""
    sure: float
    """The share of right answers among those to such an input, written with such care: what a calibrated tester
    would state (q)."""
    expected: float
    """The share of right answers to such an input, over the tester's choice of care (b)."""
    passed: float
    """Share of the problem's programs that pass it with the solution's answer (p)."""


TestPay = Callable[[JudgedTest, float], float]
"""From a test and alpha to its pay."""


def fixed(test: JudgedTest, alpha: float) -> float:
    """alpha right + (1 - alpha) right kill: the rules `fixed` with one test per suite."""
    return test.right * (alpha + (1 - alpha) * test.kill)


def brier(test: JudgedTest, alpha: float) -> float:
    """alpha (1 - (q - right)^2) + (1 - alpha) kill.

    The score of a forecast by Brier (Verification of forecasts expressed in terms of probability, 1950) instead of
    being right, for a tester that states how sure it is and is calibrated. Paying a test so is ours.
    """
    return alpha * (1 - (test.sure - test.right) ** 2) + (1 - alpha) * test.kill


def regret(test: JudgedTest, alpha: float) -> float:
    """alpha right + (1 - alpha) regret, with regret = kill.

    Regret is what the best player gets beyond the learning one (PAIRED, arXiv 2012.02096). The best player here is the
    solution, which passes every test that it fills in; so its regret is that the program fails. The weights are ours.
    """
    return alpha * test.right + (1 - alpha) * test.kill


def learnability(test: JudgedTest, alpha: float) -> float:
    """right (alpha + (1 - alpha) 4 p (1 - p)), where p is the share of the problem's programs that pass.

    p (1 - p) is the learnability of a task (Sampling for Learnability, arXiv 2408.15099); times 4 it is 1 at most, as a
    kill is. The weights, and that only right tests earn it, are ours.
    """
    return test.right * (alpha + (1 - alpha) * 4 * test.passed * (1 - test.passed))


def baseline_per_input(test: JudgedTest, alpha: float) -> float:
    """kill + right - b, where b depends on the input only. Ours; alpha is ignored.

    On average an input earns its kills, however hard it is to answer, and care earns what it adds to right answers.
    """
    return test.kill + test.right - test.expected
