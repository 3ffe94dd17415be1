"""Runs in, one HTML file out; its pictures beside it if they are wanted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

from codea1_agents.lab.report.archive import Archive
from codea1_agents.lab.report.charts import heat_map_svg, panel_svg
from codea1_agents.lab.report.crossplay import crossplay_heat_maps
from codea1_agents.lab.report.game_run import game_run
from codea1_agents.lab.report.material import HeatMap, Panel, Remark, RunMaterial, Series
from codea1_agents.lab.report.page import page_of
from codea1_agents.lab.report.palette import TONES, lone_style
from codea1_env.errors import BrokenInput
from codea1_env.records.journal import file_errors
from codea1_env.records.whole_files import write_text

MAX_BYTES = 20_000_000
_MOST_APART = 1 << 20
_FEW_PARTS = 0.9  # share of the bound that texts may fill: curves and indices need the rest


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a report."""

    n_bytes: int
    n_candidates: int
    """In the browser of episodes."""
    notes: tuple[str, ...]
    """What was left out for want of room."""


def read_run(path: Path, name: str) -> RunMaterial:
    """Return what a report says about the run in a folder, of whatever kind it is.

    Raises:
        BrokenInput: no run there, or it cannot be read.
    """
    if (path / "metrics.jsonl").is_file():
        from codea1_agents.lab.report.training_run import training_run  # noqa: PLC0415  slow to import

        return replace(training_run(path, name), heat_maps=crossplay_heat_maps(path))
    if path.is_dir() and not (path / "episodes.jsonl").is_file():
        raise BrokenInput(
            f"{path}: no run of codea1 play or codea1 train there (neither episodes.jsonl nor metrics.jsonl)"
        )
    return replace(game_run(path, name), heat_maps=crossplay_heat_maps(path))


def write_report(runs: Sequence[RunMaterial], path: Path, title: str, *, max_bytes: int = MAX_BYTES) -> Written:
    """Write the report, whole or not at all.

    A report that would be too large first loses the raw replies, then episodes, evenly over each run; what is left out
    is said on the page.

    Args:
        runs: in order.
        path: the file.
        title: of the page.
        max_bytes: of the file.

    Raises:
        UserError: it cannot be written.
    """
    archive, notes = _fitting(runs, int(max_bytes * _FEW_PARTS))
    told = [replace(run, remarks=(*run.remarks, *notes_of)) for run, notes_of in zip(runs, notes, strict=True)]
    page = page_of(title, told, comparing(runs), archive)
    write_text(path, page)
    said = tuple(dict.fromkeys(remark.text for notes_of in notes for remark in notes_of))
    return Written(len(page.encode()), archive.n_rows, said)


def write_pictures(runs: Sequence[RunMaterial], folder: Path, *, png: bool = False) -> list[Path]:
    """Write every chart as SVG, and as PNG if asked for; a folder per run if there are several.

    Raises:
        MissingExtra: a PNG is wanted and matplotlib is not installed.
        UserError: they cannot be written.
    """
    written = []
    for run in runs:
        place = folder / slug(run.name) if len(runs) > 1 else folder
        with file_errors(place):
            place.mkdir(parents=True, exist_ok=True)
        for panel in run.panels:
            written.append(_picture(panel_svg(panel, title_id="t"), place / f"{panel.key}.svg", panel.title))
            if png:
                from codea1_agents.lab.report.png import write_png  # noqa: PLC0415  needs matplotlib

                written.append(write_png(panel, place / f"{panel.key}.png"))
        written += [write_heat_map(heat, place / f"{heat.key}.svg") for heat in run.heat_maps]
    return written


def write_picture(panel: Panel, path: Path) -> None:
    """Write one chart as SVG.

    Raises:
        UserError: it cannot be written.
    """
    _picture(panel_svg(panel, title_id="t"), path, panel.title)


def write_heat_map(heat: HeatMap, path: Path) -> Path:
    """Write one matrix as SVG.

    Raises:
        UserError: it cannot be written.
    """
    return _picture(heat_map_svg(heat, title_id="t"), path, heat.title)


def comparing(runs: Sequence[RunMaterial]) -> tuple[Panel, ...]:
    """Return charts in which runs of one kind lie over each other: those of both rewards."""
    if len(runs) < 2 or len({run.axis for run in runs}) > 1:
        return ()
    panels = []
    for role in ("coder", "tester"):
        series = []
        for number, run in enumerate(runs):
            curves = [s for panel in run.panels if panel.key == "rewards" for s in panel.series if s.name == role]
            series += [Series(run.name, curve.points, TONES[number % len(TONES)]) for curve in curves]
        if series:
            note = f"Mean reward of the {role} in each run."
            panels.append(Panel(f"{role}-rewards", f"The {role}'s reward", note, tuple(series), runs[0].axis))
    return tuple(panels)


def slug(name: str) -> str:
    """Return a name that any file system takes."""
    return re.sub(r"[^\w.-]+", "_", name, flags=re.ASCII).strip(".") or "run"


def _picture(svg: str, path: Path, title: str) -> Path:
    attributes, _, content = svg.removeprefix("<svg ").partition(">")
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="800" {attributes}><title id="t">{escape(title)}</title>'
    write_text(path, f"{head}<style>{lone_style()}</style>{content}\n")
    return path


def _fitting(runs: Sequence[RunMaterial], max_bytes: int) -> tuple[Archive, list[tuple[Remark, ...]]]:
    """Return an archive of at most so many bytes, and what has to be said of each run."""
    archive = _archived(runs, 1, with_replies=True)
    if archive.n_bytes <= max_bytes:
        return archive, [()] * len(runs)
    archive = _archived(runs, 1, with_replies=False)
    every = 1
    while archive.n_bytes > max_bytes and every < _MOST_APART:
        every = max(every + 1, -(-every * archive.n_bytes // max_bytes))
        archive = _archived(runs, every, with_replies=False)
    texts = ["The raw replies are left out, so that this file stays small."]
    if every > 1:
        texts.append(
            f"Only every {every}th episode can be read below, so that this file stays small; figures know all."
        )
    return archive, [tuple(map(Remark, texts))] * len(runs)


def _archived(runs: Sequence[RunMaterial], every: int, *, with_replies: bool) -> Archive:
    archive = Archive(with_replies=with_replies)
    for number, run in enumerate(runs):
        for position, group in enumerate(run.groups()):
            if position % every == 0:
                archive.add(number, group)
    archive.close()
    return archive
