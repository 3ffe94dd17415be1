"""`codea1 experiment`: the options. What it does: `experimenting`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from codea1_agents.cli.options import Json, takes


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentOptions:
    """The options."""

    name: Annotated[str, typer.Argument(help="A declared experiment, e.g. paper-cpu, or a .toml file.")]
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder; the same command goes on there.", show_default="experiments/NAME"),
    ] = None
    workers: Annotated[int | None, typer.Option(min=1, help="Cells at a time.", show_default="one per processor")] = (
        None
    )
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Only so many seeds per system.", show_default="as declared")
    ] = None
    only: Annotated[str, typer.Option(help="Only these systems, with commas between them, and what they need.")] = ""
    cluster: Annotated[
        str, typer.Option(help="Run cells on this Ray cluster (auto or an address); the folder must be shared.")
    ] = ""
    report_only: Annotated[bool, typer.Option("--report-only", help="Run nothing, write the report anew.")] = False
    as_json: Json = False


@takes(ExperimentOptions)
def experiment(options: ExperimentOptions) -> None:
    """Run a grid of trainings (systems x bases x seeds) and write one report with tables and pictures.

    What is done is kept: interrupted at any point, the same command completes it with the same numbers.

    \b
    Example:
      codea1 experiment paper-cpu --workers 2
    """
    from codea1_agents.cli.experimenting import run_experiment  # noqa: PLC0415  heavy

    run_experiment(options)
