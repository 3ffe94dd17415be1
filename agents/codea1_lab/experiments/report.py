"""The report of an experiment: a Markdown file with tables, and pictures in the same folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import isnan, nan
from pathlib import Path
from statistics import fmean, median
from types import MappingProxyType

from codea1_env.records.whole_files import write_whole
from codea1_lab.experiments.declaration import Experiment, Picture
from codea1_lab.experiments.grid import Cell
from codea1_lab.experiments.headlines import headline_table
from codea1_lab.experiments.pictures import draw
from codea1_lab.experiments.results import RESULTS, CellResult, write_results
from codea1_lab.experiments.spread import paired_difference, spread_of
from codea1_lab.experiments.tables import Results, at_equal_compute, difference_text, head, markdown_of, row, values_of

_HELD_OUT = "evaluation/coder_pass_at_1"
_BUDGETS = (0.25, 0.5, 1.0)  # shares of the median processor time of the trained systems


def write_report(
    experiment: Experiment,
    cells: Sequence[Cell],
    results: Results,
    folder: Path,
    *,
    others: Results = MappingProxyType({}),
) -> Path:
    """Write `report.md`, `results.jsonl` and the pictures into a folder. The report counts the cells that are missing.

    A picture of curves is not drawn from results that have none, such as those of `results.jsonl`. One that is there is
    kept, and one that is not there is not shown.

    Args:
        experiment: what the results are of.
        cells: that the report is about.
        results: by cell; cells that have not run are missing.
        folder: to write into.
        others: further results to keep in `results.jsonl`.

    Raises:
        OSError: it cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for picture in experiment.pictures:
        if picture.is_over_setting or not any(r.is_thinned for c, r in results.items() if c.system in picture.systems):
            draw(picture, experiment, results, folder / f"{picture.file}.svg")
    write_results(folder / RESULTS, {**others, **results}.values())
    path = folder / "report.md"
    write_whole(path, text_of(experiment, cells, results, pictures_in(folder, experiment)).encode())
    return path


def pictures_in(folder: Path, experiment: Experiment) -> list[Picture]:
    """Return the pictures of an experiment that are in a folder."""
    return [picture for picture in experiment.pictures if (folder / f"{picture.file}.svg").exists()]


def text_of(experiment: Experiment, cells: Sequence[Cell], results: Results, pictures: Iterable[Picture] = ()) -> str:
    """Return the text of the report, with some pictures. Pure."""
    results = {cell: results[cell] for cell in cells if cell in results}
    n_done = len(results)
    seeds = f"{experiment.seeds} seed{'s' * (experiment.seeds != 1)}"
    bases = f"{len(experiment.bases)} base{'s' * (len(experiment.bases) != 1)}"
    parts = [
        f"# {experiment.name}",
        "",
        *([experiment.about.strip(), ""] if experiment.about else []),
        *([f"All start from {model.name}, weights {model.digest}.", ""] if (model := experiment.model) else []),
        f"Made by `codea1 experiment {experiment.name}`: {n_done} of {len(cells)} cells, {seeds} of {bases} unless said"
        " otherwise. Figures are means over cells ± half of the 95 % interval (Student's t over cells)"
        " [smallest to largest cell]; there are no intervals below three. The interval of a difference in bold excludes"
        f" 0; only the headline comparisons are corrected for their number. {_judge_versions(results)}".rstrip(),
        "",
    ]
    headlines = headline_table(experiment, results)
    parts += [headlines] if headlines else []
    parts += [markdown_of(table, experiment, results) for table in experiment.tables]
    compute = _equal_compute(experiment, results)
    parts += [compute] if compute else []
    parts += [f"### {picture.title}\n\n![{picture.title}]({picture.file}.svg)\n" for picture in pictures]
    return "\n".join(parts)


def _judge_versions(results: Results) -> str:
    versions = sorted({result.judge_version for result in results.values()})
    return f"Verdicts: version {' and '.join(map(str, versions))} of the judge." if versions else ""


def _equal_compute(experiment: Experiment, results: Results) -> str:
    """Return the table of held-out accuracy at equal processor time; empty if no training has measured it."""
    trained = [
        system.name
        for system in experiment.systems
        if any(_HELD_OUT in point.figures for c, r in results.items() if c.system == system.name for point in r.curve)
    ]
    if not trained:
        return ""
    spent = {system: spread_of(values_of(results, system, "cpu_s")).mean for system in trained}
    budgets = experiment.read_at_s or [share * median(spent.values()) for share in _BUDGETS]
    lines = [
        "### Equal compute",
        "",
        "Held-out accuracy of the coder, in percent, after these processor seconds of training, interpolated between"
        " evaluations; `-` where a cell has ended before. Then the lead of the compared system over each other one,"
        " pair by pair: only a lead in bold is one, and no lead shown is not equality.",
        "",
        *head(["system", *(f"{budget:.0f} s" for budget in budgets), "whole run", "seconds of a whole run"]),
    ]
    whole = {system: _at(results, system, None) for system in trained}
    values = {system: [_at(results, system, budget) for budget in budgets] for system in trained}
    for system in trained:
        means = [fmean(each.values()) if each else nan for each in (*values[system], whole[system])]
        lines.append(row([system, *("-" if isnan(m) else f"{100 * m:.1f}" for m in means), f"{spent[system]:.0f}"]))
    first = experiment.compared_to
    if first in trained:
        rivals = [name for name in trained if name != first]
        steady = _at_common_cost(results, trained)
        lines += _leads(results, first, rivals, budgets)
        lines += ["", _COMMON, *_leads(steady, first, rivals, budgets)]
        lines += _shared(experiment, results, budgets)
    return "\n".join([*lines, ""])


_COMMON = (
    "The same, where each step costs the mean over all cells of its system, which takes the load of the machine out:"
)


def _leads(results: Results, first: str, rivals: Iterable[str], budgets: Sequence[float]) -> list[str]:
    lines = ["", *head([f"{first} minus", *(f"{budget:.0f} s" for budget in budgets)])]
    return [*lines, *(row([rival, *_texts(results, results, first, rival, budgets)]) for rival in rivals)]


def _texts(ours: Results, others: Results, first: str, rival: str, budgets: Sequence[float]) -> Iterator[str]:
    """Yield the leads of a system over a rival, which may be timed otherwise."""
    for budget in budgets:
        yield difference_text(paired_difference(_at(ours, first, budget), _at(others, rival, budget)), percent=True)


def _at_common_cost(results: Results, trained: Sequence[str]) -> Results:
    """Return results whose steps cost the mean of their system's cells."""
    ends = {cell: result.curve[-1] for cell, result in results.items() if result.curve}
    costs = {name: fmean(end.cpu_s / end.step for cell, end in ends.items() if cell.system == name) for name in trained}
    return {cell: _timed(results[cell], costs[cell.system], 0.0) for cell in ends if cell.system in costs}


def _timed(result: CellResult, step_s: float | None, begin_s: float) -> CellResult:
    """Return a result whose training began after some seconds and, if `step_s` is given, had steps of that length."""
    points = [
        point.model_copy(update={"cpu_s": begin_s + (point.cpu_s if step_s is None else step_s * point.step)})
        for point in result.curve
    ]
    return result.model_copy(update={"curve": tuple(points)})


def _shared(experiment: Experiment, results: Results, budgets: Sequence[float]) -> list[str]:
    """Return the leads over the system whose one trained tester is taken, by the number of coders that pay for it."""
    system = experiment.system(experiment.compared_to)
    sources = [results[cell].curve[-1].cpu_s for cell in sorted(results) if cell.system == system.tester_from]
    if not system.from_first_base or not sources:
        return []
    lines = [
        "",
        f"With the training of the tester ({sources[0]:.1f} s), shared by several coders, `{system.name}` minus"
        f" `{system.tester_from}`:",
        "",
        *head(["coders", *(f"{budget:.0f} s" for budget in budgets)]),
    ]
    for n_coders in range(1, 1 + sum(cell.system == system.name for cell in results)):
        charged = {cell: _timed(result, None, sources[0] / n_coders) for cell, result in results.items()}
        texts = _texts(charged, results, system.name, system.tester_from, budgets)
        lines.append(row([str(n_coders), *texts]))
    return lines


def _at(results: Results, system: str, cpu_s: float | None) -> dict[Cell, float]:
    """Return the held-out accuracy of a system's cells after some processor seconds; None: at their end."""
    curves = {cell: each.curve for cell, each in results.items() if cell.system == system and each.curve}
    return {
        cell: at_equal_compute(curve, _HELD_OUT, max(p.cpu_s for p in curve) if cpu_s is None else cpu_s)
        for cell, curve in curves.items()
    }
