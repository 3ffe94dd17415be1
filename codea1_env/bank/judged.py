"""A bank with its verdicts, and the rewards of every pair of its entries. Pure.

The judge has run each program once on the cases of all suites. A round of the game consists of one program, one suite
and the replayed cases of the Mistake Book, which in this game come from the bank itself. So the report of every round
can be assembled from known verdicts, and `rules.rewards.score` scores it like any other report.
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
    """The rewards of both agents: axes P (problems), N (programs), M (suites)."""

    coder: NDArray[np.float64]
    """(P, N, M)"""
    tester: NDArray[np.float64]
    """(P, N, M)"""


@dataclass(frozen=True, slots=True)
class JudgedProblem:
    """One problem's bank and the judge's report."""

    bank: ProblemBank
    report: ProblemReport
    """(N,) candidates, each with (M,) suites."""
    cases: tuple[BookKey, ...] = field(init=False, repr=False, compare=False)
    """(C,) every distinct valid case of the suites, in their order: the cases that the Mistake Book may contain."""
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
        # If the judge has doubted a case only for this program, it is not evidence about the program.
        cases = tuple(known[key] if key in known else self._not_run(key) for key in replayed)
        return replace(whole, suites=(whole.suites[suite],), replayed=cases)

    def payoffs(
        self, rules: Ruleset, replayed: Sequence[BookKey] = ()
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the rewards of the coder and of the tester for each pair of program and suite, (N, M) each.

        Args:
            rules: the rules that pay.
            replayed: cases of the Mistake Book that are replayed against each program.
        """
        shape = len(self.bank.programs), len(self.bank.suites)
        coder, tester = np.empty(shape), np.empty(shape)
        for m, n in np.ndindex(shape):
            rewards = score(self.duel(m, n, replayed), rules)
            coder[m, n], tester[m, n] = rewards.coder.value, rewards.testers[0].value
        return coder, tester

    def _not_run(self, key: BookKey) -> CaseReport:
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
        """Return the payoffs of every pair, without replayed cases."""
        tables = [problem.payoffs(self.rules) for problem in self.problems]
        return BankPayoffs(*(np.stack(of_role) for of_role in zip(*tables, strict=True)))

    def with_rules(self, rules: Ruleset) -> JudgedBank:
        """Return the same verdicts under rules with other rewards or another book; no program is run.

        Raises:
            UserError: the rules read, validate or compare in another way, or reward golden tests that were not run.
        """
        if replace(rules.of_verdicts(), tests_per_suite=1) != replace(self.rules.of_verdicts(), tests_per_suite=1):
            raise UserError(f"rules {rules.name} give other verdicts than {self.rules.name}: judge the bank again")
        rates = [candidate.golden_pass_rate for problem in self.problems for candidate in problem.report.candidates]
        if rules.reward.scheme == RewardScheme.GOLDEN and any(rate is None or math.isnan(rate) for rate in rates):
            raise UserError("rules golden reward golden tests, which were not run: judge the bank again")
        return replace(self, rules=rules)

    def select(self, problem_ids: Sequence[str]) -> JudgedBank:
        """Return the named problems only, in the given order.

        Raises:
            UnknownName: the bank does not contain one of the problems.
        """
        order = [problem.bank.problem.id for problem in self.problems]
        names = self.bank.problem_set.select(problem_ids)
        chosen = tuple(self.problems[order.index(problem.id)] for problem in names)
        return replace(self, bank=replace(self.bank, problems=tuple(c.bank for c in chosen)), problems=chosen)
