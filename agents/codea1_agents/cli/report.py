"""`codea1 report`: the options. What it does: `reporting`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from codea1_agents.cli.options import Json


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, of codea1 play or codea1 train.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file; an older one is replaced.")],
    title: Annotated[str | None, typer.Option(help="Of the page.", show_default="the runs' names")] = None,
    pictures: Annotated[Path | None, typer.Option(help="Also write every chart as SVG into this folder.")] = None,
    png: Annotated[bool, typer.Option("--png", help="With --pictures: as PNG, too (needs matplotlib).")] = False,
    max_mb: Annotated[float, typer.Option(min=1, help="Leave texts out rather than write a larger file.")] = 20,
    as_json: Json = False,
) -> None:
    """Write one HTML file to look at runs: curves, tables, and every episode to be read.

    The file needs nothing else and loads nothing; any browser opens it from disk.

    \b
    Example:
      codea1 report runs/20260304-050607 -o report.html
    """
    from codea1_agents.cli.reporting import run_report  # noqa: PLC0415  heavy

    run_report(runs, out=out, title=title, pictures=pictures, png=png, max_mb=max_mb, as_json=as_json)
