"""The cells of an experiment, and the order in which they can run. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Set
from dataclasses import dataclass
from typing import TypeVar

from codea1_agents.train.tiny.family import VERSION
from codea1_lab.experiments.declaration import Experiment, System

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One system, trained once from one base."""

    system: str
    base: int
    """Seed of the base's pretraining."""
    seed: int
    """Seed of everything after the pretraining."""

    @property
    def name(self) -> str:
        """Path of its folder, in `cells` of the experiment's folder."""
        return f"{self.system}/base-{self.base}/seed-{self.seed}"


def cells_of(experiment: Experiment) -> tuple[Cell, ...]:
    """Return all cells. A cell comes after the cells that it needs, and after all cells with a lower seed.

    So a report of an unfinished experiment has results of each system.
    """
    order = {system.name: number for number, system in enumerate(experiment.systems)}
    cells = [
        Cell(system.name, base, seed)
        for system in experiment.systems
        for base in experiment.bases[: _n_bases(experiment, system)]
        for seed in range(_n_seeds(experiment, system))
    ]
    return tuple(sorted(cells, key=lambda cell: (cell.seed, experiment.bases.index(cell.base), order[cell.system])))


def chosen_cells(experiment: Experiment, only: Set[str]) -> tuple[Cell, ...]:
    """Return the cells of these systems or names of cells, with the cells that they need; all if there are none."""
    cells = cells_of(experiment)
    return with_needed(experiment, [cell for cell in cells if only & {cell.system, cell.name}]) if only else cells


def _closure(first: Iterable[_T], needed: Callable[[_T], Iterable[_T]]) -> set[_T]:
    """Return these, what they need, what that needs, and so on."""
    kept: set[_T] = set()
    pending = list(first)
    while pending:
        each = pending.pop()
        if each not in kept:
            kept.add(each)
            pending += needed(each)
    return kept


def _n_bases(experiment: Experiment, system: System) -> int:
    """Return the number of bases: at most that of each system whose models it takes."""
    taken = (_n_bases(experiment, experiment.system(name)) for name in system.needs if not system.from_first_base)
    return min(system.bases or len(experiment.bases), len(experiment.bases), *taken)


def _n_seeds(experiment: Experiment, system: System) -> int:
    """Return the number of seeds: that of the systems whose models it takes, or 1, if its own seed changes nothing."""
    if system.is_random:
        return system.seeds or experiment.seeds
    taken = max((_n_seeds(experiment, experiment.system(name)) for name in system.needs), default=1)
    return min(taken, system.seeds or taken)


def needs(experiment: Experiment, cell: Cell) -> dict[str, Cell]:
    """Return, by system, the cells whose models or tests this cell takes: of its seed, if any, and its own base.

    The base is the first one if its system says so.
    """
    needed, system = {}, experiment.system(cell.system)
    base = experiment.bases[0] if system.from_first_base else cell.base
    for name in system.needs:
        needed[name] = Cell(name, base, cell.seed % _n_seeds(experiment, experiment.system(name)))
    return needed


def with_needed(experiment: Experiment, cells: Collection[Cell]) -> tuple[Cell, ...]:
    """Return the cells and all cells that they need, in the order of `cells_of`."""
    kept = _closure(cells, lambda cell: needs(experiment, cell).values())
    return tuple(cell for cell in cells_of(experiment) if cell in kept)


def fingerprint(experiment: Experiment, system: str) -> str:
    """Return twelve hexadecimal digits that differ if something differs that decides the figures of a system.

    That is its declaration, the settings of its preset that are not defaults, and the version of the problems `tiny`.
    """
    kept = _closure([system], lambda name: experiment.system(name).needs)
    declared = experiment.model_dump(
        mode="json", exclude_defaults=True, include={"pretraining", "set", "evaluation", "warm_up"}
    )
    if experiment.model:
        declared["model"] = experiment.model.model_dump(mode="json", exclude_defaults=True, exclude={"folder"})
    declared["tiny"] = VERSION
    declared["systems"] = [
        {
            **each.model_dump(mode="json", exclude_defaults=True, exclude={"seeds", "bases"}),
            "training": experiment.training(each).model_dump(mode="json", exclude_defaults=True, exclude={"about"}),
        }
        for each in experiment.systems
        if each.name in kept
    ]
    return hashlib.sha256(json.dumps(declared, sort_keys=True).encode()).hexdigest()[:12]


def ready(experiment: Experiment, cells: Collection[Cell], done: Collection[Cell]) -> list[Cell]:
    """Return the cells, in order, that are not done and whose needed cells are done."""
    return [
        cell for cell in cells if cell not in done and all(need in done for need in needs(experiment, cell).values())
    ]
