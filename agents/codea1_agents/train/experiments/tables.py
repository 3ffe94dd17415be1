"""Turns results into the Markdown tables of a report. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan, nan

from codea1_agents.train.experiments.declaration import Experiment, Table
from codea1_agents.train.experiments.grid import Cell
from codea1_agents.train.experiments.results import CellResult, CurvePoint
from codea1_agents.train.experiments.spread import Difference, Spread, paired, spread_of

Results = Mapping[Cell, CellResult]


def values_of(results: Results, system: str, figure: str) -> dict[Cell, float]:
    """Return a figure of a system's cells; nan if a cell lacks it."""
    return {cell: each.figures.get(figure, nan) for cell, each in results.items() if cell.system == system}


def markdown_of(table: Table, experiment: Experiment, results: Results) -> str:
    """Return a table and, if the experiment names a system to compare to, the paired differences below it."""
    headings = ["system", "cells", *table.columns]
    lines = [f"### {table.title}", "", _row(headings), _row(["---"] * len(headings))]
    for system in table.rows:
        spreads = [spread_of(values_of(results, system, figure)) for figure in table.columns.values()]
        n_cells = sum(cell.system == system for cell in results)
        lines.append(_row([system, str(n_cells), *(_spread_text(each, percent=table.percent) for each in spreads)]))
    base = experiment.compared_to
    others = [system for system in table.rows if system != base]
    if base in table.rows and others:
        lines += ["", f"Minus `{base}`, pair by pair:", "", _row(headings), _row(["---"] * len(headings))]
        for system in others:
            found = [_minus(experiment, results, system, base, figure) for figure in table.columns.values()]
            pairs = str(max((each.n for each in found), default=0))
            lines.append(_row([system, pairs, *(_difference_text(each, percent=table.percent) for each in found)]))
    return "\n".join([*lines, ""])


def _minus(experiment: Experiment, results: Results, system: str, base: str, figure: str) -> Difference:
    values, others = values_of(results, system, figure), values_of(results, base, figure)
    if experiment.system(system).is_fixed:  # its one cell per base is compared with each seed
        values = {Cell(system, c.base, c.seed): v for c in others for own, v in values.items() if own.base == c.base}
    return paired(values, others)


def at_equal_compute(curve: Sequence[CurvePoint], figure: str, cpu_s: float) -> float:
    """Return the last value of a figure within some processor seconds of training; nan if there is none."""
    found = nan
    for point in curve:
        if point.cpu_s > cpu_s:
            break
        found = point.figures.get(figure, found)
    return found


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _spread_text(spread: Spread, *, percent: bool) -> str:
    if not spread.n:
        return "-"
    number = _Numbers(percent)
    text = number(spread.mean)
    if not isnan(spread.half_width):
        text += f" ± {number(spread.half_width)} [{number(spread.low)} to {number(spread.high)}]"
    if len(spread.by_base) > 1:
        text += f" (bases {', '.join(map(number, spread.by_base))})"
    return text


def _difference_text(difference: Difference, *, percent: bool) -> str:
    if not difference.n:
        return "-"
    number = _Numbers(percent, signed=True)
    text = number(difference.mean)
    if not isnan(difference.half_width):
        text += f" ± {_Numbers(percent)(difference.half_width)}"
    text += f" ({difference.n_larger}/{difference.n} ahead)"
    return f"**{text}**" if difference.is_shown else text


class _Numbers:
    """Formats the numbers of a table."""

    def __init__(self, percent: bool, *, signed: bool = False) -> None:
        self._factor, self._format = (100.0, ".1f") if percent else (1.0, ".3g")
        self._sign = "+" if signed else ""

    def __call__(self, value: float) -> str:
        return format(value * self._factor, self._sign + self._format)
