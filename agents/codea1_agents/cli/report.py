"""`codea1 report`: the options. What it does: `reporting`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from codea1_agents.cli.options import Options


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions(Options):
    """Write one HTML file to look at runs: curves, tables, and every episode to be read.

    The file needs nothing else and loads nothing; any browser opens it from disk.

    \b
    Example:
      codea1 report runs/20260304-050607 -o report.html
    """

    runs: Annotated[list[Path], Argument(help="Run folders, of codea1 play or codea1 train.")]
    out: Annotated[Path, Option("--out", "-o", help="The HTML file; an older one is replaced.")]
    title: Annotated[str | None, Option(help="Of the page.", show_default="the runs' names")] = None
    pictures: Annotated[Path | None, Option(help="Also write every chart as SVG into this folder.")] = None
    png: Annotated[bool, Option("--png", help="With --pictures: as PNG, too (needs matplotlib).")] = False
    max_mb: Annotated[float, Option(min=1, help="Leave texts out rather than write a larger file.")] = 20
