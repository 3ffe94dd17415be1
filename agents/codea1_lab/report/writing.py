"""Reads runs, and writes their report as one HTML file and its charts as pictures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import count
from pathlib import Path
from shlex import quote

from codea1_env.errors import BrokenInput
from codea1_env.records.file_errors import file_errors, require_run
from codea1_env.records.whole_files import write_text
from codea1_lab.report.archive import Archive
from codea1_lab.report.charts import panel_svg
from codea1_lab.report.comparison import comparison_panels
from codea1_lab.report.game_run import game_run
from codea1_lab.report.material import RunMaterial
from codea1_lab.report.page import data_of, page_of
from codea1_lab.report.palette import lone_style

MAX_BYTES = 20_000_000
KINDS = {"metrics.jsonl": "training", "episodes.jsonl": "games"}
"""The kinds of runs, by the file that each kind has."""
_MAX_STRIDE = 1 << 20
_MOST_NAMED = 8  # runs within a folder that is none
_TEXT_SHARE = 0.9  # share of the file for texts; curves and the index need the rest


@dataclass(frozen=True, slots=True)
class ReportFile:
    """Facts about a written report."""

    n_bytes: int
    n_candidates: int
    """Number of candidates in the browser of episodes."""
    notes: tuple[str, ...]
    """Sentences on what was left out to keep the file small."""


def run_file(path: Path) -> str:
    """Return which of the files that `KINDS` names a folder has; empty: none.

    Raises:
        BrokenInput: it has two, which one settings file cannot be of.
    """
    names = [name for name in KINDS if (path / name).is_file()]
    if len(names) > 1:
        raise BrokenInput(f"{path}: expected one run, got {' and '.join(names)}: move one into a folder of its own")
    return "".join(names)


def read_run(path: Path, name: str) -> RunMaterial:
    """Return the material of the run in a folder, of any kind.

    Raises:
        BrokenInput: no run in this folder, or it cannot be read.
        UserError: the system cannot read it, or it holds something else than files and folders.
    """
    require_run(path, "run")
    is_training = (file := run_file(path)) == "metrics.jsonl"
    if not file:
        inner = sorted(each.parent.name for name in ("episodes", "metrics") for each in path.glob(f"*/{name}.jsonl"))
        listed = ", ".join(inner[:_MOST_NAMED]) + (f" and {len(inner) - _MOST_NAMED} more" * (len(inner) > _MOST_NAMED))
        why = (
            f"it contains runs ({listed}): codea1 report {quote(str(path))}/*/"
            if inner
            else "neither episodes.jsonl nor metrics.jsonl"
        )
        raise BrokenInput(f"{path}: not a run of codea1 play or codea1 train; {why}")
    try:
        with file_errors(path):
            if is_training:
                from codea1_lab.report.training_run import training_run  # noqa: PLC0415  slow to import
            read = training_run if is_training else game_run
            return read(path, name)
    except RecursionError as error:
        raise BrokenInput(f"{path}: a file of it is nested too deeply") from error


def write_report(runs: Sequence[RunMaterial], path: Path, title: str, *, max_bytes: int = MAX_BYTES) -> ReportFile:
    """Write the report atomically.

    A report that would be too large leaves out the raw replies first, then episodes, evenly over each run. The page
    states what it leaves out.

    Args:
        runs: in order.
        path: the file to write.
        title: title of the page.
        max_bytes: size of the file at most.

    Raises:
        UserError: the file cannot be written.
    """
    panels = comparison_panels(runs)
    archive, notes = archive_within(runs, int(max_bytes * _TEXT_SHARE))
    page = page_of(title, runs, panels, data_of(runs, archive, notes))
    if (over := len(page.encode()) - max_bytes) > 0:  # charts, tables and problems need more than the rest
        archive, notes = archive_within(runs, max(1, archive.n_bytes - over))
        page = page_of(title, runs, panels, data_of(runs, archive, notes))
    write_text(path, page)
    return ReportFile(len(page.encode()), archive.n_rows, notes)


def write_pictures(runs: Sequence[RunMaterial], folder: Path) -> list[Path]:
    """Write every chart as SVG; several runs get one sub-folder each.

    Raises:
        UserError: a file cannot be written.
    """
    paths = []
    for run, name in zip(runs, file_names([run.name for run in runs]), strict=True):
        for panel in run.panels:
            paths.append((folder / name if len(runs) > 1 else folder) / f"{panel.key}.svg")
            attributes, _, content = panel_svg(panel, title_id="t").removeprefix("<svg ").partition(">")
            head = f'<svg xmlns="http://www.w3.org/2000/svg" width="800" {attributes}><title id="t">'
            write_text(paths[-1], f"{head}{escape(panel.title)}</title><style>{lone_style()}</style>{content}\n")
    return paths


def file_names(names: Iterable[str]) -> list[str]:
    """Return a valid name of a file for each of any names; no two are equal."""
    made: list[str] = []
    for name in names:
        stem = re.sub(r"[^\w.-]+", "_", name, flags=re.ASCII).strip(".") or "run"
        numbered = (f"{stem}-{n}" if n > 1 else stem for n in count(1))
        made.append(next(each for each in numbered if each not in made))
    return made


def archive_within(runs: Sequence[RunMaterial], max_bytes: int) -> tuple[Archive, tuple[str, ...]]:
    """Return an archive of at most `max_bytes` bytes, and sentences on what it leaves out."""
    archive = _archive_of(runs, 1, with_replies=True)
    if archive.n_bytes <= max_bytes:
        return archive, ()
    archive = _archive_of(runs, 1, with_replies=False)
    stride = 1
    while archive.n_bytes > max_bytes and stride < _MAX_STRIDE:
        stride = max(stride + 1, -(-stride * archive.n_bytes // max_bytes))
        archive = _archive_of(runs, stride, with_replies=False)
    notes = ["The raw replies are left out to keep this file small."]
    if stride > 1:
        notes.append(
            f"Only one of {stride} episodes is included below, to keep this file small; the figures count all episodes."
        )
    return archive, tuple(notes)


def _archive_of(runs: Sequence[RunMaterial], stride: int, *, with_replies: bool) -> Archive:
    archive = Archive(with_replies=with_replies)
    for number, run in enumerate(runs):
        for position, group in enumerate(run.groups()):
            if position % stride == 0:
                archive.add(number, group)
    archive.close()
    return archive
