"""The charts that compare runs: one for each curve that the runs have, with one line per run. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from codea1_lab.report.material import Panel, RunMaterial, Series
from codea1_lab.report.palette import RUN_TONES


def comparison_panels(runs: Sequence[RunMaterial]) -> tuple[Panel, ...]:
    """Return one chart per curve with a line per run; none for a single run or for runs of different kinds."""
    if len(runs) < 2 or len({run.axis for run in runs}) > 1:
        return ()
    panels: dict[tuple[str, str], Panel] = {}
    lines: dict[tuple[str, str], list[Series]] = {}
    for number, run in enumerate(runs):
        for panel in run.panels:
            for curve in panel.series if panel.x_label == run.axis else ():
                panels.setdefault((panel.key, curve.name), panel)
                line = Series(run.name, curve.points, RUN_TONES[number % len(RUN_TONES)], number)
                lines.setdefault((panel.key, curve.name), []).append(line)
    return tuple(_compared(panel, name, lines[key, name]) for (key, name), panel in panels.items())


def _compared(panel: Panel, name: str, lines: Sequence[Series]) -> Panel:
    title = f"{panel.title}: {name}" if len(panel.series) > 1 else panel.title
    key = f"{panel.key}-{re.sub(r'[^a-z0-9]+', '-', name.lower())}"
    return Panel(key, title, panel.note, tuple(lines), panel.x_label, panel.low, panel.high)
