"""Tables of a report, from results. Pure: results in, Markdown out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan, nan

from codea1_agents.train.experiments.declaration import Experiment, Table
from codea1_agents.train.experiments.grid import Cell
from codea1_agents.train.experiments.results import CellResult, CurvePoint
from codea1_agents.train.experiments.spread import Difference, Spread, paired, spread_of

Results = Mapping[Cell, CellResult]


def values_of(results: Results, system: str, figure: str) -> dict[Cell, float]:
    """Return one figure of a system's cells; nan where a cell does not have it."""
    return {cell: each.figures.get(figure, nan) for cell, each in results.items() if cell.system == system}


def markdown_of(table: Table, experiment: Experiment, results: Results) -> str:
    """Return the table and, where the experiment says what to compare to, the paired differences below it."""
    headings = ["system", "cells", *table.columns]
    lines = [f"### {table.title}", "", _row(headings), _row(["---"] * len(headings))]
    for system in table.rows:
        spreads = [spread_of(values_of(results, system, figure)) for figure in table.columns.values()]
        n_cells = sum(cell.system == system for cell in results)
        lines.append(_row([system, str(n_cells), *(_told(each, percent=table.percent) for each in spreads)]))
    base = experiment.compared_to
    others = [system for system in table.rows if system != base]
    if base in table.rows and others:
        lines += ["", f"Less `{base}`, pair by pair:", "", _row(headings), _row(["---"] * len(headings))]
        for system in others:
            found = [_less(experiment, results, system, base, figure) for figure in table.columns.values()]
            pairs = str(max((each.n for each in found), default=0))
            lines.append(_row([system, pairs, *(_told_difference(each, percent=table.percent) for each in found)]))
    return "\n".join([*lines, ""])


def _less(experiment: Experiment, results: Results, system: str, base: str, figure: str) -> Difference:
    mine, theirs = values_of(results, system, figure), values_of(results, base, figure)
    if experiment.system(system).is_fixed:  # its one cell per base stands beside every seed
        mine = {Cell(system, c.base, c.seed): v for c in theirs for own, v in mine.items() if own.base == c.base}
    return paired(mine, theirs)


def at_equal_compute(curve: Sequence[CurvePoint], figure: str, cpu_s: float) -> float:
    """Return a figure as it was last evaluated within some processor seconds of training; nan before the first."""
    found = nan
    for point in curve:
        if point.cpu_s > cpu_s:
            break
        found = point.figures.get(figure, found)
    return found


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _told(spread: Spread, *, percent: bool) -> str:
    if not spread.n:
        return "-"
    number = _Numbers(percent)
    told = number(spread.mean)
    if not isnan(spread.half_width):
        told += f" ± {number(spread.half_width)} [{number(spread.low)} to {number(spread.high)}]"
    if len(spread.by_base) > 1:
        told += f" (bases {', '.join(map(number, spread.by_base))})"
    return told


def _told_difference(difference: Difference, *, percent: bool) -> str:
    if not difference.n:
        return "-"
    number = _Numbers(percent, signed=True)
    told = number(difference.mean)
    if not isnan(difference.half_width):
        told += f" ± {_Numbers(percent)(difference.half_width)}"
    told += f" ({difference.n_larger}/{difference.n} ahead)"
    return f"**{told}**" if difference.is_shown else told


class _Numbers:
    """How numbers of a table are written."""

    def __init__(self, percent: bool, *, signed: bool = False) -> None:
        self._factor, self._format = (100.0, ".1f") if percent else (1.0, ".3g")
        self._sign = "+" if signed else ""

    def __call__(self, value: float) -> str:
        return format(value * self._factor, self._sign + self._format)
