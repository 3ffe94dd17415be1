"""Charts as PNG, drawn by matplotlib: for where SVG cannot go."""

from __future__ import annotations

from math import isfinite
from pathlib import Path

from codea1_agents.report.material import Panel
from codea1_agents.report.palette import LIGHT
from codea1_env.errors import MissingExtra


def write_png(panel: Panel, path: Path) -> Path:
    """Draw one panel in light colours; the same panel gives the same picture.

    Raises:
        MissingExtra: matplotlib is not installed.
        OSError: the file cannot be written.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415  heavy
    except ModuleNotFoundError as error:
        raise MissingExtra.of("pictures as PNG", "study") from error
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.subplots()
    colours = [LIGHT[series.tone] for series in panel.series]
    if panel.stacked:
        xs = sorted({p.x for series in panel.series for p in series.points})
        heights = [{p.x: p.mean for p in series.points} for series in panel.series]
        rows = [[of.get(x, 0.0) for x in xs] for of in heights]
        if len(xs) > 1:
            axes.stackplot(xs, rows, colors=colours, labels=[series.name for series in panel.series])
        else:
            base = 0.0
            for series, row, colour in zip(panel.series, rows, colours, strict=True):
                axes.bar([0], row, bottom=base, color=colour, label=series.name)
                base += row[0]
    else:
        for series, colour in zip(panel.series, colours, strict=True):
            x = [p.x for p in series.points]
            axes.plot(x, [p.mean for p in series.points], color=colour, label=series.name)
            known = [p for p in series.points if isfinite(p.low)]
            if known:
                axes.fill_between(
                    [p.x for p in known],
                    [p.low for p in known],
                    [p.high for p in known],
                    color=colour,
                    alpha=0.16,
                    lw=0,
                )
    axes.set_title(panel.title)
    axes.set_xlabel(panel.x_label)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path, format="png", dpi=120, metadata={"Software": None})
    return path
