"""Questions about the game that a bank answers by computation. Pure; a seed fixes all draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from codea1_agents.statistics import Estimate, mean_interval
from codea1_env.bank import JudgedBank, JudgedProblem
from codea1_env.facts.verdicts import ProblemReport
from codea1_env.rules.mistake_book import BookEntry, apply_changes, changes, select_replayed
from codea1_env.rules.ruleset import BookRules
from codea1_lab.games.bank_game import BankGame, strategies_of
from codea1_lab.games.equilibria import solve
from codea1_lab.games.matrix_game import TIE, MatrixGame, Vector


@dataclass(frozen=True, slots=True, eq=False)
class SuiteParts:
    """The two parts of the tester's reward on one problem: alpha * validity + (1 - alpha) * adversarial."""

    validity: Vector
    """(M,) expected values against one coder."""
    adversarial: Vector
    """(M,) expected values against the same coder."""

    def threshold(self) -> float:
        """Return the lowest alpha from which the validity-only suite is a best response, in [0, 1].

        The validity-only suite is the least adversarial one of those with the highest validity. 1: it is a best
        response at alpha = 1 only; 0: at every alpha.
        """
        top = self.validity >= self.validity.max() - TIE
        least = self.adversarial[top].min()
        lost, gained = self.validity.max() - self.validity, self.adversarial - least
        harder = gained > TIE
        if not harder.any():
            return 0.0
        # alpha * lost >= (1 - alpha) * gained must hold for every harder suite.
        return float((gained[harder] / (gained[harder] + np.maximum(lost[harder], 0.0))).max())


def parts_of_suites(bank: JudgedBank, coder: NDArray[np.float64]) -> tuple[SuiteParts, ...]:
    """Return (P,) the expected parts of the tester's reward against a coder's strategies (P, N).

    The parts are the rewards at alpha 1 and at alpha 0. This holds for any formula that is linear in alpha; terms that
    do not depend on alpha (penalties) are in both parts.
    """
    parts = {}
    for alpha in (1.0, 0.0):
        rules = replace(bank.rules, reward=replace(bank.rules.reward, alpha=alpha))
        payoffs = bank.with_rules(rules).payoffs().tester
        parts[alpha] = np.einsum("pm,pmn->pn", coder, payoffs)
    return tuple(SuiteParts(v, a) for v, a in zip(parts[1.0], parts[0.0], strict=True))


def validity_thresholds(bank: JudgedBank, coder: NDArray[np.float64]) -> dict[str, float]:
    """Return for each problem the lowest alpha from which a validity-only tester is a best response to this coder."""
    parts = parts_of_suites(bank, coder)
    return {each.bank.problem.id: part.threshold() for each, part in zip(bank.problems, parts, strict=True)}


@dataclass(frozen=True, slots=True)
class EquilibriumFigures:
    """Figures of a bank's equilibria: means over problems with 95% bootstrap intervals."""

    coder_value: Estimate
    tester_value: Estimate
    solution_played: Estimate
    """Probability of the program `solution`; 0 if the bank has none."""
    validity: Estimate
    """Expected share of a suite's K slots that hold a test with a right prediction."""
    failed: Estimate
    """Expected share of the suite's valid cases that the program fails."""
    mixed: Estimate
    """Share of problems in which a player mixes."""


def equilibrium_figures(bank: JudgedBank, fail: NDArray[np.float64], *, seed: int = 0) -> EquilibriumFigures:
    """Return the figures of a bank's equilibria.

    Args:
        bank: with the rules that compute its payoffs.
        fail: (P, N, M) share of failed cases, see `failure_shares`.
        seed: for the intervals.
    """
    game = BankGame.of(bank.payoffs())
    equilibria = game.solve()
    coder, tester = strategies_of(equilibria)
    ids = [problem.bank.problem.id for problem in bank.problems]
    right = right_shares(bank)

    def estimate(per_problem: Sequence[float]) -> Estimate:
        return mean_interval({name: [float(value)] for name, value in zip(ids, per_problem, strict=True)}, seed=seed)

    return EquilibriumFigures(
        coder_value=estimate([equilibrium.values[0] for equilibrium in equilibria]),
        tester_value=estimate([equilibrium.values[1] for equilibrium in equilibria]),
        solution_played=estimate([_solution_share(each, x) for each, x in zip(bank.problems, coder, strict=True)]),
        validity=estimate([float(y @ shares) for y, shares in zip(tester, right, strict=True)]),
        failed=estimate([float(x @ table @ y) for x, table, y in zip(coder, fail, tester, strict=True)]),
        mixed=estimate([float(max(len(e.row_support), len(e.column_support)) > 1) for e in equilibria]),
    )


def failure_shares(bank: JudgedBank) -> NDArray[np.float64]:
    """Return (P, N, M) the share of each suite's valid cases that each program fails; 0 without a valid case."""
    shape = (len(bank.problems), bank.bank.n_programs, bank.bank.n_suites)
    shares = np.zeros(shape)
    for p, problem in enumerate(bank.problems):
        for m, candidate in enumerate(problem.report.candidates):
            for n, suite in enumerate(candidate.suites):
                n_failed = sum(case.verdict.is_failure for case in suite.cases)
                shares[p, m, n] = n_failed / len(suite.cases) if suite.cases else 0.0
    return shares


def right_shares(bank: JudgedBank) -> NDArray[np.float64]:
    """Return (P, M) the share of its K slots that each suite fills with a case whose prediction is right."""
    k = bank.rules.tests_per_suite
    return np.array(
        [
            [
                min(1.0, sum(case.prediction_right is not False for case in suite.suite.cases) / k)
                for suite in problem.report.candidates[0].suites
            ]
            for problem in bank.problems
        ]
    )


def _solution_share(problem: JudgedProblem, strategy: Vector) -> float:
    return sum(float(p) for p, e in zip(strategy, problem.bank.programs, strict=True) if e.label == "solution")


@dataclass(frozen=True, slots=True)
class BookStep:
    """One round with the Mistake Book, means over problems."""

    round: int
    coder_value: float
    tester_value: float
    failed: float
    """Share of the drawn suite's valid cases that the drawn program fails."""
    validity: float
    """Share of the drawn suite's K slots that hold a right test."""
    n_replayed: float
    failed_replays: float
    """Share of the replayed cases that the drawn program fails; 0 if none is replayed."""


def rounds_with_book(bank: JudgedBank, *, n_rounds: int, with_book: bool = True, seed: int = 0) -> tuple[BookStep, ...]:
    """Play rounds: solve each round's game, draw a program and a suite from its equilibrium, and update the book.

    The replayed cases change the payoffs, so they change the equilibrium and the cases that enter the book. Each
    round's equilibrium ignores later rounds, as GRPO's groups do.

    Args:
        bank: the game.
        n_rounds: per problem.
        with_book: False: no case is replayed.
        seed: for the draws.
    """
    books = [_Book(bank.rules.book, seed, p) for p in range(len(bank.problems))]
    fail = failure_shares(bank)
    right = right_shares(bank)
    steps = []
    for number in range(1, n_rounds + 1):
        figures = []
        for p, problem in enumerate(bank.problems):
            replayed = books[p].to_replay() if with_book else ()
            equilibrium = solve(MatrixGame(*problem.payoffs(bank.rules, [entry.key for entry in replayed])))
            m = books[p].draw(equilibrium.profile.row)
            n = books[p].draw(equilibrium.profile.column)
            report = problem.duel(m, n, [entry.key for entry in replayed])
            books[p].update(ProblemReport(problem.bank.problem.id, (report,)), number)
            lost = [case.verdict.is_failure for case in report.replayed]
            share = float(np.mean(lost)) if lost else 0.0
            figures.append((*equilibrium.values, fail[p, m, n], right[p, n], len(replayed), share))
        steps.append(BookStep(number, *(float(value) for value in np.mean(figures, axis=0))))
    return tuple(steps)


class _Book:
    """One problem's Mistake Book and random generator."""

    def __init__(self, rules: BookRules, seed: int, problem: int) -> None:
        self._rules, self._rng = rules, np.random.default_rng([seed, problem])
        self._entries: tuple[BookEntry, ...] = ()

    def to_replay(self) -> tuple[BookEntry, ...]:
        return select_replayed(self._entries, self._rules)

    def update(self, report: ProblemReport, number: int) -> None:
        self._entries = apply_changes(self._entries, changes(report, self._rules), self._rules, round=number)

    def draw(self, strategy: Vector) -> int:
        return int(self._rng.choice(len(strategy), p=strategy / strategy.sum()))
