"""Turns results into the Markdown tables of a report. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import isnan, nan

from codea1_lab.experiments.declaration import ITSELF, Experiment, Table
from codea1_lab.experiments.grid import Cell
from codea1_lab.experiments.results import CellResult, CurvePoint
from codea1_lab.experiments.rules_text import rules_text
from codea1_lab.experiments.spread import Difference, Spread, paired_difference, spread_of

Results = Mapping[Cell, CellResult]
MEANINGS = {
    "coder/": "right programs",
    "tester/pass@": "right tests among the first k",
    "tester/mut_fixed@": "mutants that the right ones of the first k tests kill, over all problems (`mut_fixed@k`)",
    "tester/Mul_fixed": "`pass@K` times `mut_fixed@K`",
    "duel/kill_subtlest": "suites that beat a program with one known subtle mistake",
    "duel/right_kill_subtlest": "suites that beat a program with one known subtle mistake by a right test",
    "duel/kill": "suites that beat a wrong program",
    "duel/hit": "tests that the program with the mistake fails, as the solution answers them",
    "duel/right_hit": "right answers among the tests that the program with the mistake fails",
    "duel/right_miss": "right answers among the tests that it passes",
    "duel/aim": "tests that the program with the mistake fails less golden tests that it fails",
    "duel/answers": "probability of the right answer to the tester's own inputs, less the base's",
    "duel/validity": "right tests",
    "together/average": "pass@1 of a program drawn by lot",
    "together/chosen": "pass@1 of the program that passes most of the tests",
    "together/gain": "pass@1 of the program that passes most of the tests, less that of one drawn by lot",
    "training/coder_hacked": "attacks that are paid",
    "training/coder_fooled": "wrong programs that are paid, of all",
    "training/coder_attack": "programs that are attacks",
}
"""The units of figures, by the start of their name. Shares, unless a table says otherwise."""


def values_of(results: Results, system: str, figure: str) -> dict[Cell, float]:
    """Return a figure of a system's cells; nan if a cell lacks it."""
    return {cell: each.figures.get(figure, nan) for cell, each in results.items() if cell.system == system}


def markdown_of(table: Table, experiment: Experiment, results: Results) -> str:
    """Return a table and, if the experiment names a system to compare to, the paired differences below it."""
    headings = ["system", "rules", "cells", *table.columns]
    lines = [f"### {table.title}", "", *head(headings)]
    for system in table.rows:
        spreads = [spread_of(values_of(results, system, figure)) for figure in table.columns.values()]
        n_cells = sum(cell.system == system for cell in results)
        texts = [_spread_text(spread, percent=table.percent) for spread in spreads]
        lines.append(row([system, rules_text(experiment, system), str(n_cells), *texts]))
    base = experiment.compared_to
    others = [system for system in table.rows if system != base]
    if base in table.rows and others:
        lines += ["", f"Minus `{base}`, pair by pair:", "", *head(["system", *table.columns])]
        for system in others:
            leads = [difference_of(experiment, results, system, base, figure) for figure in table.columns.values()]
            lines.append(row([system, *(difference_text(lead, percent=table.percent) for lead in leads)]))
    return "\n".join([*lines, *legend(table.columns), ""])


def difference_of(
    experiment: Experiment, results: Results, system: str, other: str, figure: str, *, over_bases: bool = False
) -> Difference:
    """Return the figure of a system minus that of another (`0`: minus 0), by pair or over bases (`paired_difference`).

    The one cell per base of a system that nothing trains is compared with each seed.
    """
    values = values_of(results, system, figure)
    if other == ITSELF:
        return paired_difference(values, dict.fromkeys(values, 0.0), over_bases=over_bases)
    others = values_of(results, other, figure)
    if experiment.is_fixed(experiment.system(other)):
        others = _for_each_seed(others, values)
    if experiment.is_fixed(experiment.system(system)):
        values = _for_each_seed(values, others)
    return paired_difference(values, others, over_bases=over_bases)


def _for_each_seed(fixed: Mapping[Cell, float], of: Mapping[Cell, float]) -> dict[Cell, float]:
    return {cell: value for cell in of for own, value in fixed.items() if own.base == cell.base}


def at_equal_compute(curve: Sequence[CurvePoint], figure: str, cpu_s: float) -> float:
    """Return a figure after some processor seconds of training, between two evaluations on the line through them.

    The last evaluation before would be older for a slower system. It is nan before the first and after the last one: a
    training that has ended says nothing about a longer one.
    """
    known = [(point.cpu_s, point.figures[figure]) for point in curve if figure in point.figures]
    for (before, low), (after, high) in pairwise([known[0], *known] if known else []):
        if before <= cpu_s <= after:
            return low + (high - low) * (cpu_s - before) / (after - before or 1)
    return nan


def legend(figures: Mapping[str, str]) -> list[str]:
    """Return the lines below a table that say what its figures are, from their headings -> their names."""
    headings: dict[str, list[str]] = {}
    for heading, figure in figures.items():
        meaning = next((text for start, text in MEANINGS.items() if figure.startswith(start)), "")
        headings.setdefault(meaning, []).append(heading)
    known = [f"*{', '.join(names)}*: {meaning}" for meaning, names in headings.items() if meaning]
    return ["", f"{'; '.join(known)}."] if known else []


def row(cells: Sequence[str]) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def head(headings: Sequence[str]) -> list[str]:
    """Return the first two rows of a Markdown table."""
    return [row(headings), row(["---"] * len(headings))]


def _spread_text(spread: Spread, *, percent: bool) -> str:
    if not spread.n:
        return "-"
    number = _Numbers(percent)
    text = number(spread.mean)
    if not isnan(spread.half_width):
        text += f" ± {number(spread.half_width)}"
    if spread.n > 1:
        text += f" [{number(spread.low)} to {number(spread.high)}]"
    if len(spread.by_base) > 1:
        text += f" (bases {', '.join(map(number, spread.by_base))})"
    return text


def difference_text(difference: Difference, *, percent: bool) -> str:
    """Return a difference with its interval and the pairs in which it is positive; below three pairs the mean only."""
    if not difference.n:
        return "-"
    mean = _Numbers(percent, signed=True)(difference.mean)
    if isnan(difference.half_width):
        return f"{mean} ({difference.n} pair{'s' * (difference.n != 1)})"
    text = f"{mean} ± {_Numbers(percent)(difference.half_width)} ({difference.n_larger}/{difference.n} ahead)"
    return f"**{text}**" if difference.is_shown else text


class _Numbers:
    """Formats the numbers of a table."""

    def __init__(self, percent: bool, *, signed: bool = False) -> None:
        self._factor, self._format = (100.0, ".1f") if percent else (1.0, ".3g")
        self._sign = "+" if signed else ""

    def __call__(self, value: float) -> str:
        return format(value * self._factor, self._sign + self._format)
