"""The tables of docs/findings.md and its report: what their script prints, and how a prediction is judged."""

from __future__ import annotations

import importlib
import json
import re
import tomllib
from math import isnan, nan
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from codea1_lab.experiments.spread import Difference
from codea1_lab.tabular.learning import SYSTEMS
from codea1_lab.tabular.payments import ALPHAS, CREDIT, NAMES
from codea1_lab.tabular.table import DECLARED
from tests.support import ROOT

stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")


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
    ("predicted", "equal", "mean", "half_width", "n", "p", "sign", "size"),
    [
        ("+", 0, nan, nan, 0, nan, "not run", ""),
        ("+", 0, 5, nan, 2, nan, "undecided", ""),
        ("+", 0, 5, 2, 6, 0.01, "rightly", ""),
        ("+", 0, 5, 2, 6, 0.06, "undecided", ""),  # the interval alone is not corrected
        ("-", 0, 5, 2, 6, 0.01, "wrongly", ""),
        ("-", 0, -5, 2, 6, 0.01, "rightly", ""),
        ((10, None), 0, 5, 2, 6, 0.01, "rightly", "no interval"),
        ((10, (8, 12)), 0, 5, 2, 6, 0.01, "rightly", "outside"),
        ((10, (8, 12)), 0, 8, 9, 6, 0.2, "undecided", "within"),
        ((-10, (-12, -8)), 0, -9, 2, 6, 0.01, "rightly", "within"),
        ((-10, (-12, -8)), 0, 9, 2, 6, 0.01, "wrongly", "outside"),
        ((10, (8, 12)), 0, nan, nan, 0, nan, "not run", "not run"),
        ("+", 2, 0.1, 0.5, 6, 0.01, "rightly", ""),
        ("+", 2, 0.1, 3, 6, 0.4, "undecided", ""),
        ("+", 2, 5, 2, 6, 1, "wrongly", ""),
    ],
)
def test_how_a_prediction_is_judged(script, predicted, equal, mean, half_width, n, p, sign, size) -> None:
    if not isinstance(predicted, str):
        predicted = {"mean": predicted[0], "interval": predicted[1]}
    cell = script.Cell(regime="x", other="y", source="z", predicted=predicted, equal=equal)
    source = script.Source(command="", file="", page="")
    difference = Difference(mean / 100, half_width / 100, n, n, 0, p)
    found = script.Judged(cell, "fixed", source, difference, False, p, 3.0)
    assert (found.sign, found.size) == (sign, size)
    assert found.matters == {3: "no", 2: "yes", 0.5: "no"}.get(half_width, "?") or n < 3 or abs(mean) != 5


# A second implementation, which shares no code with the script

STORED = ROOT / "docs" / "experiments"


def pairs_of(cell: dict[str, Any]) -> dict[int, list[float]]:
    """Return the differences of a cell's pairs by base, in percentage points."""
    path = STORED / cell["experiment"] / "results.jsonl"
    lines = map(json.loads, path.read_text().splitlines() if path.exists() else ())
    values: dict[str, dict[tuple[int, int], float]] = {}
    for line in lines:
        if cell["figure"] in line["figures"]:
            values.setdefault(line["system"], {})[line["base"], line["seed"]] = 100 * line["figures"][cell["figure"]]
    one = values.get(cell.get("system", "code-a1"), {})
    other = dict.fromkeys(one, 0.0) if cell["other"] == "0" else values.get(cell["other"], {})
    seeds = {seed for _, seed in [*one, *other]}
    for side in (one, other):  # what nothing trains has one cell per base
        if {seed for _, seed in side} == {0}:
            side.update({(base, seed): value for (base, _), value in list(side.items()) for seed in seeds})
    found: dict[int, list[float]] = {}
    for base, seed in one.keys() & other.keys():
        found.setdefault(base, []).append(one[base, seed] - other[base, seed])
    return found


def recomputed(cell: dict[str, Any], tables: dict[str, Any]) -> tuple[float, float, float]:
    margin = cell.get("equal", 0)
    if "experiment" in cell:
        by_base = pairs_of(cell)
        numbers = [float(np.mean(each)) for each in by_base.values()]
        if len(by_base) < 3:
            numbers = [number for each in by_base.values() for number in each]
        mean, n = float(np.mean(numbers)) if numbers else nan, len(numbers)
        error = float(stats.sem(numbers)) if n > 2 else nan
    else:
        if "figure" in cell:
            name, rows = (cell["system"], cell["regime"]), tables["credit"]["lines"]
            (line,) = [each for each in rows if (each["payment"], f"alpha {each['alpha']:g}") == name]
        else:
            (line,) = [each for each in tables["tabular"]["rows"] if each["regime"] == cell["regime"]]
        lead = line["leads"][cell.get("figure", cell["other"])]
        mean, n = 100 * lead["mean"], lead["n"]
        error = 100 * lead["half_width"] / stats.t.ppf(0.975, n - 1)
    if isnan(error):
        return mean, nan, nan
    if not error:
        return mean, 0.0, float(abs(mean) >= margin)
    t = stats.t(n - 1)
    p = max(t.sf((mean + margin) / error), t.cdf((mean - margin) / error)) if margin else 2 * t.sf(abs(mean / error))
    return mean, float(t.ppf(0.975) * error), float(p)


def test_a_second_implementation_finds_the_same_in_every_cell() -> None:
    declared = tomllib.loads((ROOT / "docs" / "findings.toml").read_text())
    tables = {name: json.loads((ROOT / "docs" / declared[name]["file"]).read_text()) for name in ("tabular", "credit")}
    cells = [cell for claim in declared["claims"] for cell in claim["cells"]]
    found = [recomputed(cell, tables) for cell in cells]
    order = sorted(range(len(cells)), key=lambda n: 1.0 if isnan(found[n][2]) else found[n][2])
    corrected, most = dict.fromkeys(order, nan), 0.0
    for rank, n in enumerate(order):
        if not isnan(found[n][2]):
            corrected[n] = most = max(most, min(1.0, (len(cells) - rank) * found[n][2]))
    lines = (STORED / "findings" / "report.md").read_text().splitlines()
    rows = [line.split(" | ") for line in lines if line.startswith("|")][2:][: len(cells)]
    assert len(rows) == len(cells)
    for n, (cell, (mean, half_width, _), row) in enumerate(zip(cells, found, rows, strict=True)):
        p, predicted, margin = corrected[n], cell["predicted"], cell.get("equal", 0)
        up = predicted == "+" if isinstance(predicted, str) else predicted["mean"] > 0
        if margin:
            sign = "rightly" if p < 0.05 else "wrongly" if abs(mean) - half_width > margin else "undecided"
        else:
            sign = "undecided" if not p < 0.05 else "rightly" if (mean > 0) == up else "wrongly"
        sign = "not run" if isnan(mean) else sign
        interval = predicted.get("interval") if isinstance(predicted, dict) else None
        size = "" if isinstance(predicted, str) or margin else "no interval"
        if interval and not isnan(mean):
            size = "within" if interval[0] <= mean <= interval[1] else "outside"
        elif interval:
            size = "not run"
        told = (re.sub(r"\[([a-z]+)\].*", r"\1", row[8]), row[9].strip())
        assert told == (sign, size), row
        if not isnan(half_width):
            told = re.match(r"(.*) ± (.*) \(", row[5])
            assert told is not None
            assert [float(number) for number in told.groups()] == pytest.approx([mean, half_width], abs=0.0501)
            assert float(row[7]) == pytest.approx(p, rel=0.06, abs=1e-300)
