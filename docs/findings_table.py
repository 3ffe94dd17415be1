"""Writes the tables of `docs/findings.md` and its report from `docs/findings.toml` and the committed results.

python docs/findings_table.py
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import inf, isnan, nan
from pathlib import Path
from typing import Any, Literal

from codea1_lab.experiments.declaration import ITSELF, Experiment, Strict, load_experiment
from codea1_lab.experiments.grid import cells_of
from codea1_lab.experiments.headlines import Compared, compared, p_text
from codea1_lab.experiments.results import RESULTS, read_results
from codea1_lab.experiments.rules_text import rules_text
from codea1_lab.experiments.spread import Difference
from codea1_lab.experiments.tables import difference_text, head, row

DOCS = Path(__file__).parent
PAGE = DOCS / "findings.md"
REPORT = DOCS / "experiments" / "findings" / "report.md"
BEGIN, END = "<!-- begin: python docs/findings_table.py -->\n", "<!-- end -->\n"
OUTCOMES = ("rightly", "wrongly", "undecided", "not run")


class Predicted(Strict):
    """A predicted difference, in percentage points: from mean - half_width to mean + half_width."""

    mean: float
    half_width: float


class Cell(Strict):
    """A prediction for one regime: `system` minus `other`.

    `experiment` names a declared experiment, `other` may be `0`, and the comparison is one of its headlines. Without an
    experiment, `regime` names a row of `codea1 game tabular`, whose system is `code-a1`. With a figure it is an alpha
    of `codea1 game rewards --study credit`, whose ways to pay are compared with `fixed`.
    """

    regime: str
    experiment: str = ""
    system: str = "code-a1"
    other: str
    figure: str = ""
    predicted: Literal["+", "-"] | Predicted
    source: str
    """Of the prediction; what stands before the comma names the group in which the last lines count it."""


class Claim(Strict):
    """A claim, and its cells."""

    claim: str
    cells: tuple[Cell, ...]


class Source(Strict):
    """What makes results, the file that has them, and the page about them, both in `docs`."""

    command: str
    file: str
    page: str


@dataclass(frozen=True, slots=True)
class Observed:
    """What a cell's results say. Without a family of tests `p_corrected` is nan."""

    rules: str
    difference: Difference
    p_corrected: float
    source: Source
    over_bases: Observed | None = None
    """The same where the seeds of a base count as one pair; None: there are fewer than three bases or no seeds."""


class Findings(Strict):
    """The declaration of the page."""

    tabular: Source
    credit: Source
    claims: tuple[Claim, ...]


def outcome(predicted: Literal["+", "-"] | Predicted, observed: Observed) -> str:
    """Return one of `OUTCOMES`. Below three pairs nothing is decided."""
    difference = observed.difference
    if not difference.n:
        return "not run"
    if isnan(difference.half_width):
        return "undecided"
    low, high = bounds(predicted)
    mean, half_width = 100 * difference.mean, 100 * difference.half_width
    if not isinstance(predicted, Predicted):
        return ("rightly" if low < mean < high else "wrongly") if is_shown(observed) else "undecided"
    if mean + half_width < low or mean - half_width > high:
        return "wrongly"
    if low <= 0 <= high:
        return "rightly" if low <= mean - half_width and mean + half_width <= high else "undecided"
    return "rightly" if is_shown(observed) and mean * low > 0 else "undecided"


def is_shown(observed: Observed) -> bool:
    """Return whether the difference is not 0: by the corrected p value, else by the interval."""
    return observed.difference.is_shown if isnan(observed.p_corrected) else observed.p_corrected < 0.05


def bounds(predicted: Literal["+", "-"] | Predicted) -> tuple[float, float]:
    """Return the ends of a prediction, in percentage points."""
    if isinstance(predicted, Predicted):
        return predicted.mean - predicted.half_width, predicted.mean + predicted.half_width
    return (0.0, inf) if predicted == "+" else (-inf, 0.0)


def text_of(findings: Findings) -> str:
    """Return the table and its last line."""
    headings = ["claim", "regime", "system minus other", "rules", "predicted", "observed", "p (Holm)", "verdict"]
    lines, counts, other = head(headings), Counter[tuple[str, str]](), list[str]()
    for claim in findings.claims:
        for number, cell in enumerate(claim.cells):
            observed = _observed(findings, cell)
            found = outcome(cell.predicted, observed)
            counts[_group(cell), found] += 1
            lines.append(row(["" if number else claim.claim, *_texts(cell, observed, found)]))
            if observed.over_bases and (over := outcome(cell.predicted, observed.over_bases)) != found:
                text = difference_text(observed.over_bases.difference, percent=True)
                other.append(f"{_compared(cell)} ({cell.regime}): {text}, {over} instead of {found}")
    return "\n".join([*lines, "", _counted(counts), "", _over_bases(other), ""])


def overview_of(findings: Findings) -> str:
    """Return the page's table: for each claim the regimes and mean differences of its cells, by outcome."""
    lines = head(["claim", *OUTCOMES[:3]])
    for claim in findings.claims:
        columns: dict[str, list[str]] = {name: [] for name in OUTCOMES}
        for cell in claim.cells:
            observed = _observed(findings, cell)
            place = cell.regime.removeprefix("deep-rare, ") if cell.experiment or cell.figure else "tabular"
            columns[outcome(cell.predicted, observed)].append(f"{place} {100 * observed.difference.mean:+.1f}")
        lines.append(row([claim.claim, *(", ".join(columns[name]) for name in OUTCOMES[:3])]))
    return "\n".join([*lines, ""])


def _group(cell: Cell) -> str:
    """Return the group in which the last lines count a cell."""
    if cell.experiment:
        return cell.source.split(",")[0]
    return "credit in the tabular game" if cell.figure else "tabular game"


def _over_bases(other: Sequence[str]) -> str:
    rest = (
        f"these cells would be judged otherwise: {'; '.join(other)}" if other else "no cell would be judged otherwise"
    )
    return (
        "If the seeds of a base counted as one pair, since they are not independent, nothing would be decided by"
        f" experiments of two bases. Elsewhere {rest}."
    )


def _compared(cell: Cell) -> str:
    return f"{cell.system} minus {cell.other}".removesuffix(f" minus {ITSELF}") + f": {cell.figure}".removesuffix(": ")


def _texts(cell: Cell, observed: Observed, found: str) -> Iterator[str]:
    yield cell.regime if cell.experiment else f"tabular: {cell.regime}"
    yield _compared(cell).removesuffix(": coder/held-out")
    yield _short(observed.rules)
    yield f"{_prediction(cell.predicted)} ({cell.source})"
    if found == "not run":
        yield from (f"`{observed.source.command}`", "-", found)
    else:
        yield difference_text(observed.difference, percent=True).replace(" ahead)", ")")
        yield from (p_text(observed.p_corrected), f"[{found}](../../{observed.source.page})")


def _short(rules: str) -> str:
    """Return the rules of a cell without what the page says of all cells, and with its abbreviations."""
    return rules.replace(", strict reading", "").replace(" with the formulas of ", "/").replace("alpha ", "alpha=")


def _prediction(predicted: Literal["+", "-"] | Predicted) -> str:
    return f"{predicted.mean:+g} ± {predicted.half_width:g}" if isinstance(predicted, Predicted) else predicted


def _counted(counts: Counter[tuple[str, str]]) -> str:
    def sentence(name: str, groups: Collection[str]) -> str:
        kept = {each: sum(counts[group, each] for group in groups) for each in OUTCOMES}
        return f"{name}: " + ", ".join(f"{n} {each}" for each, n in kept.items())

    groups = list(dict.fromkeys(group for group, _ in counts))
    by_group = "; ".join(sentence(group, [group]) for group in groups)
    return f"**{sentence('Cells predicted', groups)}.** By source, and the tabular game by itself: {by_group}."


def _observed(findings: Findings, cell: Cell) -> Observed:
    if cell.experiment:
        return _of_experiment(cell)
    source = findings.credit if cell.figure else findings.tabular
    path = DOCS / source.file
    if not path.exists():
        return Observed("", Difference(nan, nan, 0, 0, 0, nan), nan, source)
    table: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return (_of_credit if cell.figure else _of_tabular)(table, cell, source)


def _of_experiment(cell: Cell) -> Observed:
    experiment = _experiment(cell.experiment)
    rules = [rules_text(experiment, name) for name in (cell.system, cell.other) if name != ITSELF]
    known = [text for text in dict.fromkeys(rules) if text != "untrained"]
    found, sign = _headline(cell)
    difference, over_bases = (each if sign > 0 else _negative(each) for each in (found.difference, found.over_bases))
    place = f"experiments/{cell.experiment}"
    source = Source(
        command=f"codea1 experiment {cell.experiment}", file=f"{place}/{RESULTS}", page=f"{place}/report.md"
    )
    text = "; ".join(known) or "untrained"
    is_other = 3 <= over_bases.n < difference.n
    other = Observed(text, over_bases, found.p_over_bases, source) if is_other else None
    return Observed(text, difference, found.p_corrected, source, other)


def _headline(cell: Cell) -> tuple[Compared, int]:
    """Return the outcome of the headline that a cell is about, and -1 if it was declared the other way round."""
    for each in _headlines(cell.experiment):
        systems = (each.headline.system, each.other)
        if each.headline.figure == cell.figure and set(systems) == {cell.system, cell.other}:
            return each, 1 if systems == (cell.system, cell.other) else -1
    raise ValueError(f"{cell.experiment} has no headline {cell.system} minus {cell.other}: {cell.figure}")


@cache
def _experiment(name: str) -> Experiment:
    return load_experiment(name)


@cache
def _headlines(name: str) -> list[Compared]:
    experiment = _experiment(name)
    path = DOCS / "experiments" / name / RESULTS
    found = read_results(path, experiment) if path.exists() else {}
    return compared(experiment, {cell: found[cell] for cell in cells_of(experiment) if cell in found})


def _negative(difference: Difference) -> Difference:
    return replace(difference, mean=-difference.mean, n_larger=difference.n_smaller, n_smaller=difference.n_larger)


def _of_tabular(table: dict[str, Any], cell: Cell, source: Source) -> Observed:
    (line,) = [each for each in table["rows"] if each["regime"] == cell.regime]
    alpha = "" if line["alpha"] is None else f", alpha {line['alpha']:g}"
    return Observed(f"{table['rules']}{alpha}", _lead(line["leads"][cell.other]), nan, source)


def _of_credit(table: dict[str, Any], cell: Cell, source: Source) -> Observed:
    asked = (cell.system, cell.regime)
    (line,) = [each for each in table["lines"] if (each["payment"], f"alpha {each['alpha']:g}") == asked]
    return Observed(f"fixed, {cell.regime}, book.update=off", _lead(line["leads"][cell.figure]), nan, source)


def _lead(lead: dict[str, Any]) -> Difference:
    return Difference(lead["mean"], lead["half_width"], lead["n"], lead["n_larger"], lead["n"] - lead["n_larger"], nan)


def page_with(table: str, page: str) -> str:
    """Return the page with another table."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + table + END + rest.split(END)[1]


def declared() -> Findings:
    """Return the declaration of the page."""
    return Findings.model_validate(tomllib.loads((DOCS / "findings.toml").read_text("utf-8")))


def written() -> dict[Path, str]:
    """Return the pages with the tables of the declaration."""
    findings = declared()
    tables = {PAGE: overview_of(findings), REPORT: text_of(findings)}
    return {page: page_with(table, page.read_text("utf-8")) for page, table in tables.items()}


if __name__ == "__main__":
    for page, text in written().items():
        page.write_text(text, "utf-8")
