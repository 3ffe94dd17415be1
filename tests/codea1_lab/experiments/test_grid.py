"""The order of cells: needs first, all systems before the next seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from codea1_agents.train.settings.loading import load_training
from codea1_agents.train.settings.options import TrainingConfig
from codea1_lab.experiments import declaration
from codea1_lab.experiments.declaration import Experiment, System
from codea1_lab.experiments.grid import Cell, cells_of, chosen_cells, fingerprint, needs, ready, with_needed

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


def test_every_cell_once_and_all_systems_before_the_next_seed_or_only_some_with_what_they_need() -> None:
    cells = cells_of(SMALL)
    assert len(set(cells)) == len(cells) == 2 + 4 + 4 + 3 + 2 + 4
    assert [cell.seed for cell in cells] == sorted(cell.seed for cell in cells)
    pair = System(name="pair", coder_from="base", tester_from="base")
    systems = (SMALL.system("base"), pair, SMALL.system("measured"))
    assert [SMALL.is_fixed(each) for each in systems] == [True, True, False]
    assert {cell.system for cell in chosen_cells(SMALL, {"static"})} == {"a1", "static"}
    last = chosen_cells(SMALL, {"static"})[-1]
    chosen = chosen_cells(SMALL, {last.name})
    assert chosen[-1] == last
    assert len(chosen) == 2, "it and the cell whose models it takes"


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
    assert with_needed(SMALL, [Cell("static", 7, 1)]) == (Cell("a1", 7, 1), Cell("static", 7, 1))


def test_a_system_has_no_more_bases_than_those_whose_models_it_takes() -> None:
    few = System(name="few", preset="code-a1", bases=1)
    small = SMALL.model_copy(update={"systems": (few, System(name="taker", preset="golden", coder_from="few"))})
    first = System(name="first", preset="golden", tester_from="few", from_first_base=True)
    of_first = SMALL.model_copy(update={"systems": (few, first)})
    assert {cell.base for cell in cells_of(of_first) if cell.system == "first"} == set(SMALL.bases)
    last = cells_of(of_first)[-1]
    assert needs(of_first, last) == {"few": Cell("few", SMALL.bases[0], last.seed)}
    assert {cell.base for cell in cells_of(small) if cell.system == "taker"} == {0}


def test_a_fingerprint_is_of_what_decides_the_figures_the_preset_included(monkeypatch: pytest.MonkeyPatch) -> None:
    more = SMALL.model_copy(update={"seeds": 9, "about": "x", "systems": (*SMALL.systems, System(name="more"))})
    assert fingerprint(more, "static") == fingerprint(SMALL, "static")
    assert fingerprint(SMALL, "static") != fingerprint(SMALL, "from-base")
    base, a1, *rest = SMALL.systems
    other = SMALL.model_copy(update={"systems": (base, a1.model_copy(update={"set": {"run.steps": 1}}), *rest)})
    assert fingerprint(other, "static") != fingerprint(SMALL, "static")  # it needs a1
    assert fingerprint(other, "from-base") == fingerprint(SMALL, "from-base")
    assert fingerprint(SMALL.model_copy(update={"set": {"run.steps": 1}}), "base") != fingerprint(SMALL, "base")
    before = fingerprint(SMALL, "a1")
    settings = load_training("code-a1")
    edited = settings.model_copy(update={"run": settings.run.model_copy(update={"steps": 7})})

    def loaded(source: str, changes: Mapping[str, Any]) -> TrainingConfig:
        return edited if source == "code-a1" else load_training(source, changes)

    monkeypatch.setattr(declaration, "load_training", loaded)
    assert fingerprint(SMALL, "a1") != before
