"""Pictures of a report as SVG: one panel per figure, over training or over a setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan
from pathlib import Path
from statistics import fmean

from codea1_agents.evaluation.canvas import canvas, stroke
from codea1_lab.experiments.declaration import Experiment, Picture
from codea1_lab.experiments.results import CellResult
from codea1_lab.experiments.spread import Spread, spread_of
from codea1_lab.experiments.tables import Results, values_of

_WINDOW = 5  # steps over which noisy training figures are averaged


@dataclass(frozen=True, slots=True)
class Line:
    """One system in one panel: the mean over its cells, and their range."""

    system: str
    x: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


def lines_of(picture: Picture, panel: str, experiment: Experiment, results: Results) -> list[Line]:
    """Return the lines of a panel, without systems that lack its figure."""
    figure = picture.panels[panel]
    if picture.is_over_setting:
        return _over_setting(picture, figure, experiment, results)
    lines = []
    for system in picture.systems:
        curves = [_curve(each, figure) for cell, each in sorted(results.items()) if cell.system == system]
        line = _mean_line(system, [curve for curve in curves if curve])
        if line is not None:
            lines.append(_by_compute(line, system, results, figure) if picture.over == "cpu_s" else line)
    return lines


def _curve(result: CellResult, figure: str) -> dict[int, float]:
    """Return the figure by step. A figure of at least half of the steps is smoothed."""
    known = {point.step: point.figures[figure] for point in result.curve if not isnan(point.figures.get(figure, nan))}
    if len(known) < len(result.curve) / 2:
        return known
    steps = sorted(known)
    return {
        step: fmean(known[other] for other in steps[max(0, number - _WINDOW + 1) : number + 1])
        for number, step in enumerate(steps)
    }


def _mean_line(system: str, curves: Sequence[dict[int, float]]) -> Line | None:
    if not curves:
        return None
    steps = sorted(set.intersection(*map(set, curves)))
    columns = [[curve[step] for curve in curves] for step in steps]
    return Line(
        system,
        tuple(map(float, steps)),
        tuple(fmean(column) for column in columns),
        tuple(min(column) for column in columns),
        tuple(max(column) for column in columns),
    )


def _by_compute(line: Line, system: str, results: Results, figure: str) -> Line:
    """Replace each step by the mean processor time of the cells up to it."""
    spent: dict[int, list[float]] = {}
    for cell, each in results.items():
        if cell.system == system:
            for point in each.curve:
                spent.setdefault(point.step, []).append(point.cpu_s)
    x = tuple(fmean(spent[int(step)]) for step in line.x)
    return Line(line.system, x, line.mean, line.low, line.high)


def _over_setting(picture: Picture, figure: str, experiment: Experiment, results: Results) -> list[Line]:
    points: dict[str, list[tuple[float, Spread]]] = {}
    for system in picture.systems:
        settings = experiment.system(system).set
        spread = spread_of(values_of(results, system, figure))
        if picture.over in settings and spread.n:
            line = str(settings.get(picture.by, "")) if picture.by else ""
            points.setdefault(line, []).append((float(settings[picture.over]), spread))
    return [_line_of(name, sorted(line, key=lambda point: point[0])) for name, line in points.items()]


def _line_of(name: str, points: Sequence[tuple[float, Spread]]) -> Line:
    spreads = [spread for _, spread in points]
    return Line(
        name,
        tuple(at for at, _ in points),
        tuple(spread.mean for spread in spreads),
        tuple(spread.low for spread in spreads),
        tuple(spread.high for spread in spreads),
    )


def draw(picture: Picture, experiment: Experiment, results: Results, path: Path) -> None:
    """Write a picture as SVG; the same results give the same bytes.

    Raises:
        MissingExtra: matplotlib is not installed.
        UserError: it cannot be written.
    """
    n_panels = len(picture.panels)
    names = _names(picture, experiment)
    with canvas(path, size=(3.6 * n_panels, 3.4), n_columns=n_panels) as (figure, axes):
        for axis, panel in zip(axes, picture.panels, strict=True):
            for line in lines_of(picture, panel, experiment, results):
                style = stroke(names.index(line.system), len(line.x))  # the same in all panels
                axis.plot(line.x, line.mean, label=line.system or None, **style)
                axis.fill_between(line.x, line.low, line.high, color=style["color"], alpha=0.15, linewidth=0)
            axis.set_title(panel)
            x = {"step": "training step", "cpu_s": "processor time, seconds"}.get(picture.over, picture.over)
            name = picture.panels[panel]
            unit = "cases" if name.startswith("book_") else "reward" if name.endswith("_reward") else "share"
            axis.set(xlabel=x, ylabel=unit)
            axis.grid(alpha=0.3)
        named = {name: handle for axis in axes for handle, name in zip(*axis.get_legend_handles_labels(), strict=True)}
        if named:
            shown = [name for name in names if name in named]
            handles = [named[name] for name in shown]
            figure.legend(handles, shown, loc="outside lower center", ncols=min(len(shown), 6), frameon=False)
        figure.suptitle(picture.title)


def _names(picture: Picture, experiment: Experiment) -> list[str]:
    """Return the names of all lines, in order: systems, or values of a setting."""
    if not picture.by:
        return [""] if picture.is_over_setting else list(picture.systems)
    return list(dict.fromkeys(str(experiment.system(name).set.get(picture.by, "")) for name in picture.systems))
