"""`codea1 report`: runs as one HTML file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from codea1_agents.cli.console import Page, pluralize, show_next
from codea1_agents.cli.options import Options, output
from codea1_agents.cli.progress import Progress
from codea1_env.errors import UserError
from codea1_env.records.whole_files import require_file
from codea1_lab.report.writing import read_run, write_pictures, write_report


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions(Options):
    """Write one HTML file about runs: curves, tables, and every episode.

    The file loads nothing else; any browser opens it from disk.

    \b
    Example:
      codea1 report runs/20260304-050607
    """

    runs: Annotated[list[Path], Argument(help="Run folders, of codea1 play or codea1 train.")]
    out: Annotated[
        Path | None,
        output(
            "The HTML file; an existing .html file is replaced.",
            is_file=True,
            show_default="beside the first run: RUN.html, RUN-and-2-more.html",
        ),
    ] = None
    pictures: Annotated[Path | None, output("Also write every chart as SVG into this folder.", "--pictures")] = None
    max_mb: Annotated[float, Option(min=1, help="Largest file size in MB; texts are left out to stay below it.")] = 20


def run_report(options: ReportOptions) -> None:
    """Read the runs and write their report.

    Raises:
        UserError: a folder is not a run, a run is named twice, or the file cannot be written.
    """
    page, pictures = Page(as_json=options.as_json), options.pictures
    folders = [(run if run.name not in {"", ".."} else run.resolve()).parent for run in options.runs]  # also of `.`
    more = f"-and-{len(options.runs) - 1}-more" if len(options.runs) > 1 else ""
    out = options.out or folders[0] / f"{options.runs[0].resolve().name}{more}.html"
    require_file(out)
    if out.is_file() and out.suffix != ".html":
        raise UserError(f"{out}: only a file whose name ends in .html is replaced by a report")
    names = _names(options.runs)
    with Progress("reading and writing", None, page):
        runs = [read_run(path, name) for path, name in zip(options.runs, names, strict=True)]
        report = write_report(runs, out, ", ".join(names), max_bytes=int(options.max_mb * 1e6))
        paths = write_pictures(runs, pictures) if pictures is not None else []
    for note in report.notes:
        page.note(note)
    read = f"{pluralize(len(runs), 'run')}, {pluralize(report.n_candidates, 'candidate')}"
    page.say(f"{out}: {read}, {report.n_bytes / 1e6:.1f} MB")
    if pictures is not None:
        page.say(f"{pictures}: {pluralize(len(paths), 'picture')}")
    page.finish(
        out=str(out),
        bytes=report.n_bytes,
        candidates=report.n_candidates,
        pictures=[str(path) for path in paths],
        notes=list(report.notes),
    )
    for folder in {each.resolve(): each for each in folders}.values():  # `codea1 web` takes one
        show_next(page, "report", folder=folder)


def _names(paths: Sequence[Path]) -> list[str]:
    """Return a short name for each run: the end of its path, long enough to distinguish the runs."""
    whole = [path.resolve() for path in paths]
    twice = [str(path) for path, n in Counter(whole).items() if n > 1]
    if twice:
        raise UserError(f"{twice[0]} is named twice")
    depth = 1
    while len({path.parts[-depth:] for path in whole}) < len(whole):
        depth += 1
    return ["/".join(path.parts[-depth:]) for path in whole]
