"""The options of `codea1 report`; `reporting` runs it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from codea1_agents.cli import completing
from codea1_agents.cli.options import Options, output


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions(Options):
    """Write one HTML file about runs: curves, tables, and every episode.

    The file loads nothing else; any browser opens it from disk.

    \b
    Example:
      codea1 report runs/20260304-050607 -o report.html
    """

    runs: Annotated[
        list[Path], Argument(help="Run folders, of codea1 play or codea1 train.", autocompletion=completing.runs)
    ]
    out: Annotated[Path, output("The HTML file; an existing file is replaced.")]
    title: Annotated[str | None, Option(help="Title of the page.", show_default="the runs' names")] = None
    pictures: Annotated[Path | None, Option(help="Also write every chart as SVG into this folder.")] = None
    png: Annotated[bool, Option("--png", help="With --pictures: also write PNG (needs matplotlib).")] = False
    max_mb: Annotated[float, Option(min=1, help="Largest file size in MB; texts are left out to stay below it.")] = 20
