"""The tables of docs/experiments/tabular/report.md are those of the committed results."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from codea1_lab.cli.game_tabular import credit_cells, lead_cells, reward_cells
from tests.support import ROOT

PAGE = (ROOT / "docs" / "experiments" / "tabular" / "report.md").read_text().splitlines()
RESULTS = ROOT / "docs" / "experiments" / "tabular"
CREDIT = json.loads((RESULTS / "credit/rewards.json").read_text())["lines"]


@pytest.mark.parametrize(
    ("file", "rows", "cells"),
    [
        ("result.json", "rows", lead_cells),
        ("causes/result.json", "rows", lead_cells),
        ("rewards.json", "lines", reward_cells),
        ("credit/rewards.json", "lines", lambda row: credit_cells(row, CREDIT)),
    ],
)
def test_rows_are_lines_of_the_page(file: str, rows: str, cells: Callable[[dict[str, Any]], tuple[str, ...]]) -> None:
    found = json.loads((RESULTS / file).read_text())[rows]
    lines = ["| " + " | ".join(cells(row)) + " |" for row in found]
    assert [line for line in PAGE if line in lines] == lines
