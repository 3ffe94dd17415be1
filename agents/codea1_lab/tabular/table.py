"""Tables of the tabular game: by how much Code-A1 leads each other system, over seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf

from codea1_env.rules.ruleset import Ruleset, preset
from codea1_lab.experiments.grid import Cell
from codea1_lab.experiments.spread import Difference, Spread, paired_difference, spread_of
from codea1_lab.tabular.learning import SYSTEMS, Schedule, Step, System, train
from codea1_lab.tabular.world import World

FIRST = "code-a1"
"""The system that the others are compared with."""


@dataclass(frozen=True, slots=True)
class Regime:
    """A world, and how a tester is trained in it."""

    world: World
    schedule: Schedule = field(default_factory=Schedule)
    alpha: float | None = None
    """Weight of validity; None: that of the rules."""
    scheme: str = ""
    """Scheme of the reward; empty: that of the rules."""
    label: str = ""
    """Its name in tables; empty: what differs from the default."""

    @property
    def rules(self) -> Ruleset:
        """The rules `fixed`, with the scheme of this regime."""
        fixed = preset("fixed")
        return replace(fixed, reward=replace(fixed.reward, scheme=self.scheme or fixed.reward.scheme))

    @property
    def name(self) -> str:
        """Its name in tables."""
        if self.label:
            return self.label
        more = [self.scheme] * bool(self.scheme) + ([] if self.alpha is None else [f"alpha {self.alpha:g}"])
        if self.schedule.aim_if_read != Schedule().aim_if_read:
            more.append(f"aim {self.schedule.aim_if_read:g}")
        if self.schedule.steps != Schedule().steps:
            more.append(f"{self.schedule.steps} steps")
        return ", ".join([f"V {self.world.n_triggers}", f"rho {self.world.reading:g}", *more])


DECLARED = (
    *(
        Regime(World(n_triggers=triggers, reading=reading))
        for triggers, reading in ((1, 0.8), (3, 0.8), (10, 0.8), (30, 0.8), (30, 0.2), (30, 0.0))
    ),
    Regime(World(n_triggers=30, reading=0.6), Schedule(steps=100, aim_if_read=-2.0), alpha=0.1),
)
"""The regimes of docs/experiments/tabular/report.md."""

_ROW, _NOW = World(n_triggers=10), Schedule()
_FEW_RIGHT = replace(_NOW, skill=0.7, lr_coder=2.3)
"""Programs are right in 20 % of cases at first; plain problems come to 72 % in 50 steps, too."""
CAUSES = (
    Regime(_ROW, _NOW, label="as above"),
    Regime(_ROW, _FEW_RIGHT, label="programs right in 20 % at first"),
    Regime(_ROW, replace(_NOW, golden_differ=True), label="golden tests all differ"),
    Regime(replace(_ROW, aims_vary=True), _NOW, label="equal aims are no duplicates"),
    Regime(_ROW, replace(_NOW, lr_tester=2 * _NOW.lr_tester), label="tester learns twice as fast"),
    Regime(_ROW, replace(_NOW, tests_per_suite=2), label="two tests per suite"),
    Regime(_ROW, replace(_NOW, n_problems=12), label="12 problems to train on"),
)
"""V 10, rho .8, with one change each: what the leads depend on."""

MAP_TRIGGERS, MAP_READING = (1, 3, 10, 30), (0.0, 0.2, 0.5, 0.8)
MAP = tuple(Regime(World(n_triggers=v, reading=rho)) for v in MAP_TRIGGERS for rho in MAP_READING)
"""The regimes of the map, by triggers, then by reading."""
_COMPARED = tuple(each for name, each in SYSTEMS.items() if name not in ("no-book", "book-alpha"))


def crossover(triggers: Sequence[int], leads: Sequence[float]) -> float:
    """Return the number of triggers from which `FIRST` leads, on a logarithmic scale between neighbours.

    Args:
        triggers: (n,) rising.
        leads: (n,) at each.

    Returns:
        The last change from behind to ahead; `triggers[0]` if it always leads, inf if it is behind at the end.
    """
    if leads[-1] < 0:
        return inf
    for (low, behind), (high, ahead) in reversed([*pairwise(zip(triggers, leads, strict=True))]):
        if behind < 0 <= ahead:
            return float(low * (high / low) ** (behind / (behind - ahead)))
    return float(triggers[0])


@dataclass(frozen=True, slots=True)
class Study:
    """Regimes, and the systems that are compared in them."""

    regimes: tuple[Regime, ...]
    systems: tuple[System, ...] = tuple(SYSTEMS.values())
    """`FIRST` is among them."""


def _deep_rare(reading: float, steps: int = 100) -> Regime:
    """Return the game of `codea1 experiment deep-rare`, as far as tables can play it, with the skills of a base."""
    return Regime(
        World(n_rare=18, n_triggers=8, reading=reading, right_naive=0.3, right_aimed=0.2),
        replace(_FEW_RIGHT, steps=steps, tests_per_suite=2, n_kept=2, skill=1.1, aim_if_read=-1.0, golden_differ=True),
        alpha=0.1,
        scheme="paper",
    )


_DEEP_RARE = (
    SYSTEMS["code-a1"],
    System("black-box", sees_program=False),
    System("self-play-control", sees_program=False, shares_suites=True, n_suites=8),
    System("golden-naive3", n_naive=3),
    System("golden-mixed16", n_golden=8, n_naive=8),
    SYSTEMS["frozen-tester"],
    SYSTEMS["no-book"],
    SYSTEMS["book-alpha"],
)

STUDIES = {
    "tabular-game": Study(DECLARED),
    "causes": Study(CAUSES, _COMPARED),
    "map": Study(MAP, _COMPARED),
    "deep-rare": Study((_deep_rare(0.48), _deep_rare(0.8)), _DEEP_RARE),
    "long": Study(
        (_deep_rare(0.48, steps=500),),
        tuple(each for each in _DEEP_RARE if each.name not in ("golden-naive3", "no-book", "book-alpha")),
    ),
}
"""By name. `causes` and `map` are in docs/experiments/tabular/report.md, too. The second regime of `deep-rare` has a
better reader; `long` is the first one with the steps of `codea1 experiment long`."""


@dataclass(frozen=True, slots=True)
class Row:
    """The results in one regime."""

    regime: Regime
    accuracy: Spread
    """Share of held-out problems that `FIRST` solves after training."""
    leads: dict[str, Difference]
    """By other system, the accuracy of `FIRST` minus its."""
    aims: Spread
    """Share of the bugs that the tester of `FIRST` reads at which it aims, after training."""


def table(
    regimes: Iterable[Regime],
    n_seeds: int,
    *,
    systems: Sequence[System] = tuple(SYSTEMS.values()),
    progress: Callable[[], object] = lambda: None,
) -> list[Row]:
    """Return one row per regime.

    Args:
        regimes: to train in.
        n_seeds: trainings per system; at least 1.
        systems: to train; `FIRST` is among them.
        progress: called after each training.
    """
    return [_row(regime, n_seeds, systems, progress) for regime in regimes]


def _row(regime: Regime, n_seeds: int, systems: Sequence[System], progress: Callable[[], object]) -> Row:
    last: dict[str, dict[Cell, Step]] = {}
    for system in systems:
        for seed in range(n_seeds):
            trained = replace(system, alpha=regime.alpha if system.alpha is None else system.alpha)
            last.setdefault(system.name, {})[Cell(system.name, 0, seed)] = train(
                trained, regime.world, regime.schedule, regime.rules, seed
            )[-1]
            progress()
    accuracy = {name: {cell: step.accuracy for cell, step in cells.items()} for name, cells in last.items()}
    return Row(
        regime,
        spread_of(accuracy[FIRST]),
        {name: paired_difference(accuracy[FIRST], cells) for name, cells in accuracy.items() if name != FIRST},
        spread_of({cell: step.aims_if_read for cell, step in last[FIRST].items()}),
    )
