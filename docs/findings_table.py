"""Writes the tables of `docs/findings.md` and its report from `docs/findings.toml` and the committed results.

python docs/findings_table.py

A cell has two verdicts. Its *sign*: rightly or wrongly at 5 % after Holm's correction over the cells of all claims,
which are one family, else undecided. Its *size*: within or outside the predictive interval that was registered for the
observed mean, if there is one. Where no effect is claimed, the sign's place is taken by equivalence: two one-sided
tests (TOST) with the cell's margin. The unit is the base, if an experiment has three, else the pair (base, seed).
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import copysign, isnan, nan
from pathlib import Path
from typing import Any, Literal

from codea1_lab.experiments.declaration import ITSELF, Experiment, Strict, load_experiment
from codea1_lab.experiments.grid import cells_of
from codea1_lab.experiments.headlines import p_text
from codea1_lab.experiments.results import RESULTS, read_results
from codea1_lab.experiments.rules_text import rules_text
from codea1_lab.experiments.spread import Difference, holm, p_of_interval, paired_difference
from codea1_lab.experiments.tables import Results, at_equal_compute, difference_of, difference_text, head, row

DOCS = Path(__file__).parent
PAGE = DOCS / "findings.md"
REPORT = DOCS / "experiments" / "findings" / "report.md"
BEGIN, END = "<!-- begin: python docs/findings_table.py -->\n", "<!-- end -->\n"
SIGNS = ("rightly", "wrongly", "undecided", "not run")
SIZES = ("within", "outside", "no interval", "not run")
LEVEL = 0.05
KNOWN, FEW = "†", "‡"
TIMES, AT_TIMES = (40, 70, 100, 130), ("golden-mixed16", "frozen-tester")
"""Processor seconds, and systems of `long` that ran on beyond the end of `deep-rare`."""


class Predicted(Strict):
    """A predicted difference, in percentage points."""

    mean: float
    interval: tuple[float, float] | None = None
    """Where the observed mean was predicted to lie, with the error of the model that predicts; None: not registered."""


class Cell(Strict):
    """A prediction for one regime: `system` minus `other`.

    `experiment` names a declared experiment, and `other` may be `0`. Without an experiment, `regime` names a row of
    `codea1 game tabular`, whose system is `code-a1`. With a figure it is an alpha of
    `codea1 game rewards --study credit`, whose ways to pay are compared with `fixed`.
    """

    regime: str
    experiment: str = ""
    system: str = "code-a1"
    other: str
    figure: str = ""
    predicted: Literal["+", "-"] | Predicted
    equal: float = 0.0
    """Margin in percentage points, if it is predicted that there is no effect; 0: an effect is predicted."""
    source: str
    """Of the prediction; what stands before the comma names the group in which the last lines count it."""


class Claim(Strict):
    """A claim, and its cells."""

    claim: str
    least: float
    """Smallest effect of interest, in percentage points."""
    cells: tuple[Cell, ...]


class Source(Strict):
    """What makes results, the file that has them, and the page about them, both in `docs`."""

    command: str
    file: str
    page: str


class Findings(Strict):
    """The declaration of the page."""

    known: tuple[str, ...]
    """Experiments whose cells were declared after results of an older judge existed."""
    tabular: Source
    credit: Source
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """A cell, what its results say, and its verdicts."""

    cell: Cell
    rules: str
    source: Source
    difference: Difference
    is_few: bool
    """Whether the unit is the pair, since there are fewer than three bases."""
    p: float
    """Holm's, over the cells of all claims; of TOST where no effect is predicted."""
    least: float

    @property
    def sign(self) -> str:
        """One of `SIGNS`."""
        mean, half_width = 100 * self.difference.mean, 100 * self.difference.half_width
        if not self.difference.n:
            return "not run"
        if self.cell.equal:
            is_apart = abs(mean) - half_width > self.cell.equal
            return "rightly" if self.p < LEVEL else "wrongly" if is_apart else "undecided"
        if not self.p < LEVEL:
            return "undecided"
        return "rightly" if mean * sign_of(self.cell) > 0 else "wrongly"

    @property
    def size(self) -> str:
        """One of `SIZES`; empty if only a sign was predicted, or no effect."""
        if not isinstance(self.cell.predicted, Predicted) or self.cell.equal:
            return ""
        if (interval := self.cell.predicted.interval) is None:
            return "no interval"
        if not self.difference.n:
            return "not run"
        return "within" if interval[0] <= 100 * self.difference.mean <= interval[1] else "outside"

    @property
    def matters(self) -> str:
        """Whether the effect, in the direction that is observed, is at least the smallest one of interest."""
        size, half_width = 100 * abs(self.difference.mean), 100 * self.difference.half_width
        if isnan(half_width):
            return "-"
        return "yes" if size - half_width >= self.least else "no" if size + half_width < self.least else "?"


def sign_of(cell: Cell) -> float:
    """Return 1 or -1, the predicted sign."""
    return copysign(1.0, cell.predicted.mean) if isinstance(cell.predicted, Predicted) else float(f"{cell.predicted}1")


def p_of(cell: Cell, difference: Difference) -> float:
    """Return the uncorrected p value of the test that would confirm a cell; nan below three pairs."""
    return p_of_interval(100 * difference.mean, 100 * difference.half_width, difference.n, margin=cell.equal)


def judged(findings: Findings) -> dict[str, list[Judged]]:
    """Return all cells by claim. Cells that have not run count in the family as well."""
    cells = [(claim, cell) for claim in findings.claims for cell in claim.cells]
    found = [_observed(findings, cell) for _, cell in cells]
    corrected = holm([p_of(cell, each[1]) for (_, cell), each in zip(cells, found, strict=True)])
    by_claim: dict[str, list[Judged]] = {}
    for (claim, cell), (rules, difference, is_few, source), p in zip(cells, found, corrected, strict=True):
        by_claim.setdefault(claim.claim, []).append(Judged(cell, rules, source, difference, is_few, p, claim.least))
    return by_claim


def text_of(findings: Findings) -> str:
    """Return the table of all cells, its last lines, and the table at equal time."""
    headings = [
        "claim",
        "regime",
        "system minus other",
        "rules",
        "predicted",
        "observed",
        "p",
        "p (Holm)",
        "sign",
        "size",
    ]
    lines, by_claim = head([*headings, "at least"]), judged(findings)
    for claim, cells in by_claim.items():
        for number, each in enumerate(cells):
            least = f"{each.least:g}: {each.matters}"
            lines.append(row(["" if number else claim, *_texts(findings, each), least]))
    all_cells = [each for cells in by_claim.values() for each in cells]
    return "\n".join([*lines, "", _counted(all_cells), "", *_at_equal_time(), ""])


def overview_of(findings: Findings) -> str:
    """Return the page's table: for each claim the regimes and mean differences of its cells, by sign."""
    lines = head(["claim", "sign as predicted", "undecided", "size within its interval"])
    for claim, cells in judged(findings).items():
        columns: dict[str, list[str]] = {name: [] for name in SIGNS}
        for each in cells:
            text = "not run" if each.sign == "not run" else f"{100 * each.difference.mean:+.1f}"
            equal = f" (±{each.cell.equal:g})" if each.cell.equal else ""
            columns[each.sign].append(f"{_place(each.cell)} {text}{equal}{_marks(findings, each)}")
        columns["undecided"] += [*columns["not run"], *(f"**otherwise:** {each}" for each in columns["wrongly"])]
        sizes = Counter(each.size for each in cells)
        n = sizes["within"] + sizes["outside"]
        size = f"{sizes['within']} of {n}" if n else ""
        lines.append(row([claim, *(", ".join(columns[name]) for name in ("rightly", "undecided")), size]))
    return "\n".join([*lines, "", _counted([each for cells in judged(findings).values() for each in cells]), ""])


def _place(cell: Cell) -> str:
    return cell.regime.removeprefix("deep-rare, ") if cell.experiment or cell.figure else "tabular"


def _marks(findings: Findings, each: Judged) -> str:
    was_known = each.cell.experiment in findings.known or not (each.cell.experiment or each.cell.figure)
    return KNOWN * was_known + FEW * each.is_few


def _group(cell: Cell) -> str:
    """Return the group in which the last lines count a cell."""
    if cell.experiment:
        return cell.source.split(",")[0]
    return "credit in the tabular game" if cell.figure else "tabular game"


def _texts(findings: Findings, each: Judged) -> Iterator[str]:
    cell = each.cell
    yield (cell.regime if cell.experiment else f"tabular: {cell.regime}") + _marks(findings, each)
    compared = f"{cell.system} minus {cell.other}".removesuffix(f" minus {ITSELF}")
    yield compared if cell.figure in ("", "coder/held-out") else f"{compared}: {cell.figure}"
    yield each.rules.replace(", strict reading", "").replace(" with the formulas of ", "/").replace("alpha ", "alpha=")
    yield f"{_prediction(cell)} ({cell.source})"
    if each.sign == "not run":
        yield from (f"`{each.source.command}`", "-", "-", each.sign, each.size)
    else:
        yield difference_text(each.difference, percent=True).replace(" ahead)", ")").replace("**", "")
        yield from (
            p_text(p_of(cell, each.difference)),
            p_text(each.p),
            f"[{each.sign}](../../{each.source.page})",
            each.size,
        )


def _prediction(cell: Cell) -> str:
    equal = f", equal within {cell.equal:g}" if cell.equal else ""
    if not isinstance(cell.predicted, Predicted):
        return cell.predicted + equal
    low, high = cell.predicted.interval or (nan, nan)
    return f"{cell.predicted.mean:+g}" + ("" if isnan(low) else f", {low:+g} to {high:+g}") + equal


def _counted(cells: Sequence[Judged]) -> str:
    def counts(kind: Literal["sign", "size"], names: Sequence[str], some: Sequence[Judged]) -> str:
        found = Counter(getattr(each, kind) for each in some)
        return ", ".join(f"{found[name]} {name}" for name in names)

    groups = list(dict.fromkeys(_group(each.cell) for each in cells))
    by_group = "; ".join(
        f"{group}: {counts('sign', SIGNS, [each for each in cells if _group(each.cell) == group])}" for group in groups
    )
    return (
        f"**{len(cells)} cells. Signs: {counts('sign', SIGNS, cells)}. Sizes: {counts('size', SIZES, cells)}.**"
        f" Signs by source: {by_group}."
    )


def _at_equal_time() -> list[str]:
    """Return the table of leads at equal processor time, over the rivals of `long` that ran on."""
    results, figure = _results("long"), "evaluation/coder_pass_at_1"

    def at(system: str, cpu_s: float) -> dict[Any, float]:
        return {
            cell: at_equal_compute(each.curve, figure, cpu_s) for cell, each in results.items() if cell.system == system
        }

    lines = head(["code-a1 minus", *(f"{time} s" for time in TIMES)])
    for other in AT_TIMES:
        differences = [paired_difference(at("code-a1", time), at(other, time)) for time in TIMES]
        lines.append(row([other, *(difference_text(each, percent=True) for each in differences)]))
    return ["At equal processor seconds of training (`long`, interpolated between evaluations):", "", *lines]


_Observed = tuple[str, Difference, bool, Source]


def _observed(findings: Findings, cell: Cell) -> _Observed:
    """Return the rules of a cell, its difference, whether its unit is the pair, and where its results come from."""
    if cell.experiment:
        return _of_experiment(cell)
    source = findings.credit if cell.figure else findings.tabular
    path = DOCS / source.file
    if not path.exists():
        return "", Difference(nan, nan, 0, 0, 0, nan), False, source
    table: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return (_of_credit if cell.figure else _of_tabular)(table, cell, source)


def _of_experiment(cell: Cell) -> _Observed:
    experiment, results = _experiment(cell.experiment), _results(cell.experiment)
    rules = [rules_text(experiment, name) for name in (cell.system, cell.other) if name != ITSELF]
    known = [text for text in dict.fromkeys(rules) if text != "untrained"]
    compared = (experiment, results, cell.system, cell.other, cell.figure)
    pairs, bases = difference_of(*compared), difference_of(*compared, over_bases=True)
    is_few = bases.n < 3 <= pairs.n
    place = f"experiments/{cell.experiment}"
    command = f"codea1 experiment {cell.experiment}"
    source = Source(command=command, file=f"{place}/{RESULTS}", page=f"{place}/report.md")
    return "; ".join(known) or "untrained", pairs if is_few else bases, is_few, source


@cache
def _experiment(name: str) -> Experiment:
    return load_experiment(name)


@cache
def _results(name: str) -> Results:
    experiment = _experiment(name)
    path = DOCS / "experiments" / name / RESULTS
    found = read_results(path, experiment) if path.exists() else {}
    return {cell: found[cell] for cell in cells_of(experiment) if cell in found}


def _of_tabular(table: dict[str, Any], cell: Cell, source: Source) -> _Observed:
    (line,) = [each for each in table["rows"] if each["regime"] == cell.regime]
    alpha = "" if line["alpha"] is None else f", alpha {line['alpha']:g}"
    return f"{table['rules']}{alpha}", _lead(line["leads"][cell.other]), False, source


def _of_credit(table: dict[str, Any], cell: Cell, source: Source) -> _Observed:
    asked = (cell.system, cell.regime)
    (line,) = [each for each in table["lines"] if (each["payment"], f"alpha {each['alpha']:g}") == asked]
    return f"fixed, {cell.regime}, book.update=off", _lead(line["leads"][cell.figure]), False, source


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
