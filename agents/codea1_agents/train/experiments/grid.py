"""The cells of an experiment, and in which order they can run. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from codea1_agents.train.experiments.declaration import Experiment, System


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One system, trained once from one base."""

    system: str
    base: int
    """Seed of the base's pretraining."""
    seed: int
    """Of everything after it."""

    @property
    def name(self) -> str:
        """Its folder's path within the experiment's."""
        return f"{self.system}/base-{self.base}/seed-{self.seed}"


def cells_of(experiment: Experiment, only: Collection[str] = ()) -> tuple[Cell, ...]:
    """Return all cells; those that others need come first, and one seed of every system before the next seed.

    So an experiment that is looked at half way has something to say about each system.

    Args:
        experiment: whose cells.
        only: systems to keep, with all that they need; empty: every system.
    """
    kept = _with_needs(experiment, only)
    order = {system.name: number for number, system in enumerate(experiment.systems)}
    found = [
        Cell(system.name, base, seed)
        for system in experiment.systems
        if system.name in kept
        for base in experiment.bases[: system.bases or len(experiment.bases)]
        for seed in range(_n_seeds(experiment, system))
    ]
    return tuple(sorted(found, key=lambda cell: (cell.seed, experiment.bases.index(cell.base), order[cell.system])))


def _with_needs(experiment: Experiment, only: Collection[str]) -> set[str]:
    kept: set[str] = set()
    owed = list(only) or [system.name for system in experiment.systems]
    while owed:
        name = owed.pop()
        if name not in kept:
            kept.add(name)
            owed += experiment.system(name).needs
    return kept


def _n_seeds(experiment: Experiment, system: System) -> int:
    """One where nothing is random before the evaluation, its own or that of whom it takes models from."""
    if system.is_random:
        return system.seeds or experiment.seeds
    taken = max((_n_seeds(experiment, experiment.system(name)) for name in system.needs), default=1)
    return min(taken, system.seeds or taken)


def needs(experiment: Experiment, cell: Cell) -> dict[str, Cell]:
    """Return, by system, the cells that this one takes from: same base, and same seed as far as they have so many."""
    found = {}
    for name in experiment.system(cell.system).needs:
        found[name] = Cell(name, cell.base, cell.seed % _n_seeds(experiment, experiment.system(name)))
    return found


def ready(experiment: Experiment, cells: Collection[Cell], done: Collection[Cell]) -> list[Cell]:
    """Return those of the cells, in order, whose needs are done."""
    return [
        cell for cell in cells if cell not in done and all(each in done for each in needs(experiment, cell).values())
    ]
