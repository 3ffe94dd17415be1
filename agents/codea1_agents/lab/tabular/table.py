"""Tables of the tabular game: by how much Code-A1 leads each other system, over seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from codea1_agents.lab.tabular.learning import SYSTEMS, Schedule, Step, System, train
from codea1_agents.lab.tabular.world import World
from codea1_agents.train.experiments.grid import Cell
from codea1_agents.train.experiments.spread import Difference, Spread, paired, spread_of
from codea1_env.rules.ruleset import Ruleset

FIRST = "code-a1"
"""The system that the others are compared with."""


@dataclass(frozen=True, slots=True)
class Regime:
    """A world, and how a tester is trained in it."""

    world: World
    schedule: Schedule = field(default_factory=Schedule)
    alpha: float | None = None
    """Weight of validity; None: that of the rules."""

    @property
    def name(self) -> str:
        """What differs from the default, for tables."""
        more = [] if self.alpha is None else [f"alpha {self.alpha:g}"]
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
    systems: Sequence[str] = tuple(SYSTEMS),
    progress: Callable[[], object] = lambda: None,
) -> list[Row]:
    """Return one row per regime.

    Args:
        regimes: to train in.
        rules: of rewards and book.
        n_seeds: trainings per system; at least 1.
        systems: names in `SYSTEMS`; `FIRST` is among them.
        progress: called after each training.
    """
    return [_row(regime, rules, n_seeds, [SYSTEMS[name] for name in systems], progress) for regime in regimes]


def _row(
    regime: Regime, rules: Ruleset | str, n_seeds: int, systems: Sequence[System], progress: Callable[[], object]
) -> Row:
    last: dict[str, dict[Cell, Step]] = {}
    for system in systems:
        for seed in range(n_seeds):
            trained = replace(system, alpha=regime.alpha if system.alpha is None else system.alpha)
            last.setdefault(system.name, {})[Cell(system.name, 0, seed)] = train(
                trained, regime.world, regime.schedule, rules, seed
            )[-1]
            progress()
    accuracy = {name: {cell: step.accuracy for cell, step in cells.items()} for name, cells in last.items()}
    return Row(
        regime,
        spread_of(accuracy[FIRST]),
        {name: paired(accuracy[FIRST], cells) for name, cells in accuracy.items() if name != FIRST},
        spread_of({cell: step.aims_if_read for cell, step in last[FIRST].items()}),
    )
