"""A bank with its verdicts, and what every pair of its entries is worth under some rules. Pure.

The judge has run each program once on the cases of all suites. A round of the game is one program, one suite and the
cases replayed from the Mistake Book, which in this game come from the bank itself: so every round's report can be put
together from what is known, and `rules.rewards.score` pays it, as it pays any other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from codea1_env.bank.entries import Bank, ProblemBank
from codea1_env.errors import UserError
from codea1_env.facts.verdicts import CandidateReport, CaseReport, ProblemReport, Verdict
from codea1_env.rules.mistake_book import BookKey
from codea1_env.rules.rewards import score
from codea1_env.rules.ruleset import RewardScheme, Ruleset


@dataclass(frozen=True, slots=True, eq=False)
class BankPayoffs:
    """What both agents earn: axes P (problems), M (programs), N (suites)."""

    coder: NDArray[np.float64]
    """(P, M, N)"""
    tester: NDArray[np.float64]
    """(P, M, N)"""


@dataclass(frozen=True, slots=True)
class JudgedProblem:
    """One problem's bank and what the judge found."""

    bank: ProblemBank
    report: ProblemReport
    """(M,) candidates, each with (N,) suites."""
    cases: tuple[BookKey, ...] = field(init=False, repr=False, compare=False)
    """(C,) every distinct valid case of the suites, in their order: what the Mistake Book can come to hold."""
    _known: tuple[dict[BookKey, CaseReport], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        known = tuple(
            {BookKey.of(case.case): case for suite in candidate.suites for case in suite.cases}
            for candidate in self.report.candidates
        )
        object.__setattr__(self, "_known", known)
        object.__setattr__(self, "cases", tuple(dict.fromkeys(key for each in known for key in each)))

    def duel(self, program: int, suite: int, replayed: Sequence[BookKey] = ()) -> CandidateReport:
        """Return the report of one round: a program, a suite and replayed cases of `cases`."""
        whole = self.report.candidates[program]
        known = self._known[program]
        # A case that was doubted for this program alone is no evidence about it.
        cases = tuple(known[key] if key in known else self._unheard(key) for key in replayed)
        return replace(whole, suites=(whole.suites[suite],), replayed=cases)

    def payoffs(
        self, rules: Ruleset, replayed: Sequence[BookKey] = ()
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what each pair of program and suite earns the coder and the tester, (M, N) each.

        Args:
            rules: of the rewards.
            replayed: cases of the Mistake Book that each program meets, too.
        """
        shape = len(self.bank.programs), len(self.bank.suites)
        coder, tester = np.empty(shape), np.empty(shape)
        for m, n in np.ndindex(shape):
            rewards = score(self.duel(m, n, replayed), rules)
            coder[m, n], tester[m, n] = rewards.coder.value, rewards.testers[0].value
        return coder, tester

    def _unheard(self, key: BookKey) -> CaseReport:
        case = next(known[key].case for known in self._known if key in known)
        return CaseReport(case, Verdict.NOT_RUN)


@dataclass(frozen=True, slots=True)
class JudgedBank:
    """A bank with the verdicts of all its entries under one ruleset."""

    bank: Bank
    rules: Ruleset
    problems: tuple[JudgedProblem, ...]
    """(P,) in the bank's order."""

    def payoffs(self) -> BankPayoffs:
        """Return the payoffs of every pair, without any replayed case."""
        tables = [problem.payoffs(self.rules) for problem in self.problems]
        return BankPayoffs(*(np.stack(of_role) for of_role in zip(*tables, strict=True)))

    def with_rules(self, rules: Ruleset) -> JudgedBank:
        """Return the same verdicts under other reward formulas or another book; nothing is executed.

        Raises:
            UserError: the others read, validate or compare in another way, or pay for golden tests that were not run.
        """
        if replace(rules.of_verdicts(), tests_per_suite=1) != replace(self.rules.of_verdicts(), tests_per_suite=1):
            raise UserError(f"rules {rules.name} make other verdicts than {self.rules.name}: judge the bank again")
        rates = [each.golden_pass_rate for problem in self.problems for each in problem.report.candidates]
        if rules.reward.scheme == RewardScheme.GOLDEN and any(rate is None or math.isnan(rate) for rate in rates):
            raise UserError("rules golden pay for golden tests, which were not run: judge the bank again")
        return replace(self, rules=rules)

    def select(self, problem_ids: Sequence[str]) -> JudgedBank:
        """Return the named problems only, in the given order.

        Raises:
            UnknownName: there is no such problem.
        """
        order = [each.bank.problem.id for each in self.problems]
        names = self.bank.problem_set.select(problem_ids)
        chosen = tuple(self.problems[order.index(problem.id)] for problem in names)
        return replace(self, bank=replace(self.bank, problems=tuple(c.bank for c in chosen)), problems=chosen)
