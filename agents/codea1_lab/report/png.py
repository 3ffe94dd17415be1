"""Draws charts as PNG with matplotlib."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Any

from codea1_agents.measure.canvas import canvas
from codea1_lab.report.material import Panel
from codea1_lab.report.palette import LIGHT


def write_png(panel: Panel, path: Path) -> Path:
    """Draw one panel in the light theme; the same panel gives the same picture.

    Raises:
        MissingExtra: matplotlib is not installed.
        UserError: the file cannot be written.
    """
    with canvas(path, size=(6.4, 4.0)) as (_, (axis,)):
        if panel.stacked:
            _stack(axis, panel)
        else:
            for series in panel.series:
                colour, x = LIGHT[series.tone], [p.x for p in series.points]
                axis.plot(x, [p.mean for p in series.points], color=colour, label=series.name)
                known = [p for p in series.points if isfinite(p.low)]
                low, high = [p.low for p in known], [p.high for p in known]
                axis.fill_between([p.x for p in known], low, high, color=colour, alpha=0.16, lw=0)
        axis.set_title(panel.title)
        axis.set_xlabel(panel.x_label)
        axis.grid(alpha=0.3)
        axis.legend(frameon=False)
    return path


def _stack(axis: Any, panel: Panel) -> None:
    names, colours = [series.name for series in panel.series], [LIGHT[series.tone] for series in panel.series]
    heights = [{p.x: p.mean for p in series.points} for series in panel.series]
    xs = sorted({x for of in heights for x in of})
    if len(xs) > 1:
        axis.stackplot(xs, [[of.get(x, 0.0) for x in xs] for of in heights], colors=colours, labels=names)
        return
    base = 0.0
    for name, of, colour in zip(names, heights, colours, strict=True):  # one bar
        height = sum(of.values())
        axis.bar([0], height, bottom=base, color=colour, label=name)
        base += height
