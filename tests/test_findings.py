"""The tables of docs/findings.md and its report: what their script prints, and how a prediction is judged."""

from __future__ import annotations

import importlib
from math import nan
from types import ModuleType
from typing import Any

import pytest

from codea1_lab.experiments.spread import Difference
from codea1_lab.tabular.learning import SYSTEMS
from codea1_lab.tabular.payments import ALPHAS, CREDIT, NAMES
from codea1_lab.tabular.table import DECLARED
from tests.support import ROOT

pytest.importorskip("scipy", reason="scipy is not installed")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        return importlib.import_module("findings_table")


def test_the_pages_have_what_the_script_prints(script: ModuleType) -> None:
    assert {page: page.read_text("utf-8") for page in script.written()} == script.written()


def test_cells_of_the_tabular_game_name_its_rows(script: ModuleType) -> None:
    cells = [cell for claim in script.declared().claims for cell in claim.cells if not cell.experiment]
    paid = [cell for cell in cells if cell.figure]
    assert {cell.regime for cell in paid} <= {f"alpha {alpha:g}" for alpha in ALPHAS}
    assert {cell.system for cell in paid} <= {each.name for each in CREDIT}
    assert {cell.figure for cell in paid} <= set(NAMES)
    assert {cell.other for cell in paid} == {"fixed"}
    cells = [cell for cell in cells if not cell.figure]
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
