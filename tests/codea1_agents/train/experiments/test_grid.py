"""The order of cells: needs first, all systems before the next seed."""

from __future__ import annotations

from codea1_agents.train.experiments.declaration import Experiment, System
from codea1_agents.train.experiments.grid import Cell, cells_of, needs, ready

SMALL = Experiment(
    name="small",
    bases=(0, 7),
    seeds=2,
    systems=(
        System(name="base"),
        System(name="a1", preset="code-a1"),
        System(name="static", preset="golden", supervision="a1"),
        System(name="from-base", preset="golden", supervision="base", seeds=3, bases=1),
        System(name="measured-once", coder_from="a1", seeds=1),
        System(name="measured", coder_from="a1", seeds=9),
    ),
)


def test_every_cell_once() -> None:
    cells = cells_of(SMALL)
    assert len(set(cells)) == len(cells) == 2 + 4 + 4 + 3 + 2 + 4


def test_all_systems_before_the_next_seed() -> None:
    seeds = [cell.seed for cell in cells_of(SMALL)]
    assert seeds == sorted(seeds)


def test_only_some_systems_with_what_they_need() -> None:
    assert {cell.system for cell in cells_of(SMALL, only=["static"])} == {"a1", "static"}


def test_a_cell_waits_for_its_needs() -> None:
    cells = cells_of(SMALL)
    done: list[Cell] = []
    while len(done) < len(cells):
        waiting = ready(SMALL, cells, done)
        assert waiting, "nothing can begin any more"
        assert all(each in done for cell in waiting for each in needs(SMALL, cell).values())
        done.append(waiting[0])
    assert needs(SMALL, Cell("static", 7, 1)) == {"a1": Cell("a1", 7, 1)}
    assert needs(SMALL, Cell("from-base", 0, 2)) == {"base": Cell("base", 0, 0)}
