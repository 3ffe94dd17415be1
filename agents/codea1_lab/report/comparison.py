"""The charts that compare runs: one for each curve that runs of one kind share, with one line per run. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from codea1_lab.report.material import Panel, RunMaterial, Series
from codea1_lab.report.palette import RUN_TONES


def comparison_panels(runs: Sequence[RunMaterial]) -> tuple[Panel, ...]:
    """Return one chart per curve with a line per run; runs of different kinds share none, a single run has none."""
    panels: dict[tuple[str, str, str], Panel] = {}
    lines: dict[tuple[str, str, str], list[Series]] = {}
    for number, run in enumerate(runs):
        for panel in run.panels:
            for curve in panel.series if panel.x_label == run.axis or not panel.stacked else ():
                key = run.kind, panel.key, curve.name
                panels.setdefault(key, panel)
                line = Series(run.name, curve.points, RUN_TONES[number % len(RUN_TONES)], number, number)
                lines.setdefault(key, []).append(line)
    shared = []
    for names, panel in panels.items():
        if len(lines[names]) > 1:
            title = f"{panel.title}: {names[-1]}" if len(panel.series) > 1 else panel.title
            name = re.sub(r"[^a-z0-9]+", "-", "-".join(names).lower())
            shared.append(replace(panel, key=name, title=title, series=tuple(lines[names]), stacked=False))
    return tuple(shared)
