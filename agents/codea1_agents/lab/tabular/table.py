"""Tables of the tabular game: by how much Code-A1 leads each other system, over seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from codea1_agents.lab.tabular.learning import SYSTEMS, Schedule, Step, System, train
from codea1_agents.lab.tabular.world import World
from codea1_agents.train.experiments.grid import Cell
from codea1_agents.train.experiments.spread import Difference, Spread, paired, spread_of
from codea1_env.rules.ruleset import Ruleset, preset

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

    def ruled(self, rules: Ruleset) -> Ruleset:
        """Return rules with the scheme of this regime."""
        return replace(rules, reward=replace(rules.reward, scheme=self.scheme)) if self.scheme else rules

    @property
    def name(self) -> str:
        """What differs from the default, for tables."""
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
"""The regimes of docs/tabular-game.md."""


@dataclass(frozen=True, slots=True)
class Study:
    """Regimes, and the systems that are compared in them."""

    regimes: tuple[Regime, ...]
    systems: tuple[System, ...] = tuple(SYSTEMS.values())
    """`FIRST` is among them."""


STUDIES = {
    "tabular-game": Study(DECLARED),
    "deep-rare": Study(
        tuple(
            Regime(
                World(n_rare=18, n_triggers=8, reading=reading, right_naive=0.3, right_aimed=0.2),
                Schedule(steps=100, tests_per_suite=2, n_kept=2, skill=1.1, aim_if_read=-1.0),
                alpha=0.1,
                scheme="paper",
            )
            for reading in (0.48, 0.8)
        ),
        (
            SYSTEMS["code-a1"],
            System("black-box", sees_program=False),
            System("self-play-control", sees_program=False, shares_suites=True, n_suites=8),
            System("golden-naive3", n_naive=3),
            System("golden-mixed16", n_golden=8, n_naive=8),
            SYSTEMS["frozen-tester"],
            SYSTEMS["no-book"],
            SYSTEMS["book-alpha"],
        ),
    ),
}
"""By name. `deep-rare` is the game of `codea1 experiment deep-rare`, as far as tables can play it: with the skills of a
base, and in the second regime with a better reader."""


@dataclass(frozen=True, slots=True)
class Row:
    """The results in one regime."""

    regime: Regime
    accuracy: Spread
    """Of `FIRST` after training, on held-out problems."""
    leads: dict[str, Difference]
    """By other system, the accuracy of `FIRST` minus its."""
    aims: Spread
    """How often the tester of `FIRST` aims at a bug that it reads, after training."""


def table(
    regimes: Iterable[Regime],
    rules: Ruleset | str,
    n_seeds: int,
    *,
    systems: Sequence[System] = tuple(SYSTEMS.values()),
    progress: Callable[[], object] = lambda: None,
) -> list[Row]:
    """Return one row per regime.

    Args:
        regimes: to train in.
        rules: of rewards and book.
        n_seeds: trainings per system; at least 1.
        systems: to train; `FIRST` is among them.
        progress: called after each training.
    """
    return [_row(regime, rules, n_seeds, systems, progress) for regime in regimes]


def _row(
    regime: Regime, rules: Ruleset | str, n_seeds: int, systems: Sequence[System], progress: Callable[[], object]
) -> Row:
    ruled = regime.ruled(preset(rules) if isinstance(rules, str) else rules)
    last: dict[str, dict[Cell, Step]] = {}
    for system in systems:
        for seed in range(n_seeds):
            trained = replace(system, alpha=regime.alpha if system.alpha is None else system.alpha)
            last.setdefault(system.name, {})[Cell(system.name, 0, seed)] = train(
                trained, regime.world, regime.schedule, ruled, seed
            )[-1]
            progress()
    accuracy = {name: {cell: step.accuracy for cell, step in cells.items()} for name, cells in last.items()}
    return Row(
        regime,
        spread_of(accuracy[FIRST]),
        {name: paired(accuracy[FIRST], cells) for name, cells in accuracy.items() if name != FIRST},
        spread_of({cell: step.aims_if_read for cell, step in last[FIRST].items()}),
    )
