"""The table of docs/findings.md: what its script prints, and how a prediction is judged."""

from __future__ import annotations

import importlib
import json
from math import nan
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from codea1_lab.experiments.spread import Difference
from codea1_lab.tabular.learning import SYSTEMS
from codea1_lab.tabular.table import DECLARED
from tests.support import ROOT

pytest.importorskip("scipy", reason="scipy is not installed")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        return importlib.import_module("findings_table")


def test_the_page_has_what_the_script_prints(script: ModuleType) -> None:
    page = script.PAGE.read_text("utf-8")
    assert script.page_with(script.text_of(script.declared()), page) == page


def test_cells_of_the_tabular_game_name_its_rows(script: ModuleType) -> None:
    cells = [cell for claim in script.declared().claims for cell in claim.cells if not cell.experiment]
    assert {cell.regime for cell in cells} <= {regime.name for regime in DECLARED}
    assert {cell.other for cell in cells} <= set(SYSTEMS)


@pytest.mark.parametrize(
    ("predicted", "mean", "half_width", "n", "p", "expected"),
    [
        ("+", nan, nan, 0, nan, "not run"),
        ("+", 5, nan, 2, nan, "undecided"),
        ("+", 5, 2, 6, 0.01, "rightly"),
        ("+", 5, 2, 6, 0.06, "undecided"),  # the interval alone is not corrected
        ("+", 5, 2, 6, nan, "rightly"),  # no family of tests
        ("+", 5, 6, 6, nan, "undecided"),
        ("-", 5, 2, 6, 0.01, "wrongly"),
        ("-", -5, 2, 6, 0.01, "rightly"),
        ((10, 2), 7, 2, 6, 0.01, "rightly"),
        ((10, 2), 5, 2, 6, 0.01, "wrongly"),
        ((10, 2), 7, 9, 6, 0.2, "undecided"),
        ((-10, 2), -7, 2, 6, 0.01, "rightly"),
        ((0, 3), 1, 1, 6, 0.01, "rightly"),
        ((0, 3), 1, 4, 6, 0.6, "undecided"),
        ((0, 3), 8, 4, 6, 0.01, "wrongly"),
    ],
)
def test_how_a_prediction_is_judged(
    script: ModuleType, predicted: Any, mean: float, half_width: float, n: int, p: float, expected: str
) -> None:
    difference = Difference(mean / 100, half_width / 100, n, n, 0, p)
    observed = script.Observed("fixed", difference, p, script.Source(command="", file="", page=""))
    wanted = predicted if isinstance(predicted, str) else script.Predicted(mean=predicted[0], half_width=predicted[1])
    assert script.outcome(wanted, observed) == expected


def test_results_fill_the_table(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "DOCS", tmp_path)
    script._headlines.cache_clear()
    lines = [
        {"system": system, "base": 0, "seed": seed, "figures": {"coder/held-out": value + seed / 100}}
        for system, value, n in (("base", 0.3, 1), ("code-a1", 0.7, 4), ("golden", 0.72, 4))
        for seed in range(n)
    ]
    (tmp_path / "experiments/paper-cpu").mkdir(parents=True)
    (tmp_path / "experiments/paper-cpu/results.jsonl").write_text("\n".join(map(json.dumps, lines)))
    lead = {"mean": 0.2, "half_width": 0.01, "n": 6, "n_larger": 6}
    row = {"regime": "V 30, rho 0.8", "alpha": 0.1, "leads": {"black-box": lead}}
    (tmp_path / "tabular.json").write_text(json.dumps({"rules": "fixed", "rows": [row]}))
    figures = {"base": "coder/held-out", "golden": "coder/held-out", "sft": "tester/pass@4"}
    cells = [
        *(
            {"experiment": "paper-cpu", "regime": "plain", "other": other, "figure": of}
            for other, of in figures.items()
        ),
        {"regime": "V 30, rho 0.8", "other": "black-box"},
    ]
    declared = {
        "tabular": {"command": "codea1 game tabular", "file": "tabular.json", "page": "tabular-game.md"},
        "claims": [{"claim": "x", "cells": [{**cell, "predicted": "+", "source": "paper, table 1"} for cell in cells]}],
    }
    text = script.text_of(script.Findings.model_validate(declared))
    script._headlines.cache_clear()
    base, golden, sft, tabular = text.splitlines()[2:6]
    assert "**+41.5 ± 2.1 (4/4 ahead)** " in base
    assert "rightly | [experiments/paper-cpu/results.jsonl](experiments/paper-cpu/report.md) |" in base
    assert "**-2.0 ± 0.0 (0/4 ahead)** " in golden
    assert "wrongly" in golden
    assert "not run: `codea1 experiment paper-cpu`" in sft
    assert "| tabular: V 30, rho 0.8 | code-a1 minus black-box | fixed, alpha 0.1 | " in tabular
    assert "rightly | [tabular.json](tabular-game.md) |" in tabular
    assert "Cells predicted: 2 rightly, 1 wrongly, 0 undecided, 1 not run" in text


def test_a_cell_that_is_no_headline_is_refused(script: ModuleType) -> None:
    cell = script.Cell(
        regime="plain", experiment="paper-cpu", other="golden", figure="x", predicted="+", source="paper, table 1"
    )
    with pytest.raises(ValueError, match="paper-cpu has no headline code-a1 minus golden: x"):
        script._headline(cell)
