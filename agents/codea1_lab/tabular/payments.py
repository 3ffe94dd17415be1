"""Ways to pay a tester that can answer without care: which of them makes it aim, and which makes it lie.

In this world careless tests hit what they aim at and are hardly ever right, careful ones are right more often and
sometimes miss. Each way trains Code-A1 in the same regimes and seeds, without a Mistake Book, so that alpha means the
same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from statistics import fmean
from typing import Any

from codea1_env.rules.ruleset import CommonKills, CreditRules, RewardRules, preset
from codea1_lab.experiments.grid import Cell
from codea1_lab.experiments.spread import Difference, Spread, paired_difference, spread_of
from codea1_lab.tabular.credit import TestPay, baseline_per_input, brier, fixed, learnability, regret
from codea1_lab.tabular.criterion import alpha_of_first_kill
from codea1_lab.tabular.learning import Schedule, Step, System, train
from codea1_lab.tabular.table import Regime
from codea1_lab.tabular.world import World

FIRST, AIMING = "fixed", "release"
"""The ways with which the others are compared: in validity and accuracy, and in how often testers aim."""
_LAST = 10  # steps over which the validity is averaged
_PLAIN = System("code-a1", has_book=False)


@dataclass(frozen=True, slots=True)
class Payment:
    """A reward of suites, and a system that says what it pays for."""

    name: str
    reward: RewardRules
    system: System = _PLAIN
    has_alpha_of_first_kill: bool = False
    """Whether validity weighs as much as it does where one failure earns the whole adversity."""


def _credit_payment(name: str, **credit: Any) -> Payment:
    return Payment(name, replace(_FIXED, credit=CreditRules(**credit)))


def _by_suite_and_test(pay: TestPay) -> tuple[Payment, Payment]:
    name, by_suite = pay.__name__.replace("_", " "), replace(_PLAIN, pay=pay)
    return Payment(name, _FIXED, by_suite), Payment(f"{name}, by test", _FIXED, replace(by_suite, credit="test"))


def _first_kill(name: str, **credit: Any) -> Payment:
    return replace(_credit_payment(name, most_kills=1, **credit), has_alpha_of_first_kill=True)


_FIXED = preset("fixed").reward
_CONDITIONED = replace(_PLAIN, advantages="conditioned")
PAYMENTS = (
    Payment("fixed", _FIXED),
    Payment("paper", preset("paper").reward),
    Payment("release", preset("release").reward),
    _credit_payment("gate", gate=0.5),
    _credit_payment("floor", floor=0.5),
    _credit_payment("call, gate", wrong_answers=True, gate=0.5),
    _credit_payment("call, factor", wrong_answers=True, power=1.0),
    _credit_payment("budget", forgiven=1),
    _credit_payment("rare kills", common_kills=CommonKills.GROUP),
    _first_kill("first kill"),
    Payment("fixed, alpha of first kill", _FIXED, has_alpha_of_first_kill=True),
    _first_kill("first kill, rare kills", common_kills=CommonKills.GROUP),
    _first_kill("first kill, call, gate", wrong_answers=True, gate=0.5),
    Payment("decoupled", _FIXED, replace(_PLAIN, advantages="decoupled")),
    Payment("conditioned", _FIXED, _CONDITIONED),
    Payment("release, conditioned", preset("release").reward, _CONDITIONED),
)
"""Ways to pay suites."""

CREDIT = (
    *(payment for payment in PAYMENTS if payment.name in ("fixed", "release", "first kill", "conditioned")),
    _by_suite_and_test(fixed)[1],
    *chain.from_iterable(map(_by_suite_and_test, (brier, regret, learnability, baseline_per_input))),
    Payment("block", _FIXED, replace(_PLAIN, credit="block")),
    Payment("block, 4 answers", _FIXED, replace(_PLAIN, credit="block", n_answers=4)),
)
"""Ways to pay suites, tests, and inputs and answers apart."""

PAYMENTS_OF = {"suites": PAYMENTS, "credit": CREDIT}
"""The studies of docs/experiments/tabular/report.md."""

ALPHAS = (0.1, 0.5)
WORLDS = tuple(
    World(n_triggers=triggers, reading=reading, right_careless=0.1, distraction=0.3)
    for triggers in (10, 30)
    for reading in (0.6, 0.8)
)
"""The regimes of docs/experiments/tabular/report.md."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Figures of one training, shares in [0, 1]."""

    right: float
    """Share of right programs for held-out problems."""
    validity: float
    """Share of tests with a right answer, over the last steps."""
    aims: float
    """Share of the bugs that the tester reads at which it aims."""
    care: float
    """Share of its aimed tests that it answers with care."""
    subtle: float
    """Share of suites that beat a program with one rare bug."""


NAMES = tuple(field.name for field in fields(Outcome))


@dataclass(frozen=True, slots=True)
class Line:
    """The results of a way to pay at one alpha, over worlds and seeds."""

    payment: str
    alpha: float
    spreads: dict[str, Spread]
    """One value per figure."""
    leads: dict[str, Difference]
    """By figure, over `FIRST`."""
    over_aiming: Difference
    """Difference of its share of aims to that under `AIMING`."""

    @property
    def wins(self) -> bool:
        """Whether the tester is not shown to be less valid or careful, nor to aim less, nor the coder to be worse."""
        compared = (*(self.leads[name] for name in ("validity", "care", "right")), self.over_aiming)
        return all(difference.mean + difference.half_width >= 0 for difference in compared)


def compare(
    n_seeds: int,
    *,
    alphas: Sequence[float] = ALPHAS,
    payments: Sequence[Payment] = PAYMENTS,
    worlds: Sequence[World] = WORLDS,
    schedule: Schedule | None = None,
    progress: Callable[[], object] = lambda: None,
) -> list[Line]:
    """Return one line per alpha and way to pay.

    Args:
        n_seeds: trainings per world; at least 1.
        alphas: weights of validity.
        payments: ways to pay; `FIRST` and `AIMING` are among them.
        worlds: in which answers may be careless.
        schedule: how each training proceeds.
        progress: called after each training.
    """
    lines: list[Line] = []
    for alpha in alphas:
        outcomes: dict[str, dict[Cell, Outcome]] = {}
        for payment in payments:
            for number, world in enumerate(worlds):
                for seed in range(n_seeds):
                    regime = Regime(world, schedule or Schedule(), alpha)
                    outcomes.setdefault(payment.name, {})[Cell(payment.name, number, seed)] = _outcome(
                        payment, regime, seed
                    )
                    progress()
        lines += [_line(name, alpha, outcomes) for name in outcomes]
    return lines


def _line(name: str, alpha: float, outcomes: dict[str, dict[Cell, Outcome]]) -> Line:
    columns = {
        payment: {figure: {cell: getattr(each, figure) for cell, each in cells.items()} for figure in NAMES}
        for payment, cells in outcomes.items()
    }
    return Line(
        name,
        alpha,
        {figure: spread_of(columns[name][figure]) for figure in NAMES},
        {figure: paired_difference(columns[name][figure], columns[FIRST][figure]) for figure in NAMES},
        paired_difference(columns[name]["aims"], columns[AIMING]["aims"]),
    )


def _outcome(payment: Payment, regime: Regime, seed: int) -> Outcome:
    tests = regime.schedule.tests_per_suite
    alpha = regime.alpha or 0.0
    if payment.has_alpha_of_first_kill:
        alpha = alpha_of_first_kill(alpha, tests)
    system = replace(payment.system, alpha=alpha)
    steps = train(system, regime.world, regime.schedule, replace(preset("fixed"), reward=payment.reward), seed)
    last = steps[-1]
    validity = fmean(step.validity for step in steps[1:][-_LAST:])
    return Outcome(last.accuracy, validity, last.aims_if_read, last.care[1], _subtle(last, regime.world, tests))


def _subtle(step: Step, world: World, tests: int) -> float:
    """Return how often a suite beats a program with one rare bug; a guessed value finds it as often as chance says."""
    hits = 1 - step.care[1] * world.distraction
    if_read = 1 - (1 - step.aims_if_read * hits) ** tests
    blindly = 1 - (1 - step.aims_blindly / (world.n_places * world.n_triggers)) ** tests
    return world.reading * if_read + (1 - world.reading) * blindly
