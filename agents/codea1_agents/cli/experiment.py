"""The options of `codea1 experiment`; `experimenting` runs it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from codea1_agents.cli.options import NoProgress, Options, output


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentOptions(Options):
    """Run a grid of trainings (systems x bases x seeds) and write one report with tables and pictures.

    Finished cells are stored: after an interruption, the same command completes the grid with the same numbers.

    \b
    Example:
      codea1 experiment paper-cpu --workers 2
    """

    name: Annotated[str, Argument(help="A declared experiment, e.g. paper-cpu, or a .toml file.")]
    out: Annotated[
        Path | None,
        output("Folder; the same command continues in it.", show_default="experiments/NAME"),
    ] = None
    workers: Annotated[int | None, Option(min=1, help="Cells run at once.", show_default="one per processor")] = None
    seeds: Annotated[int | None, Option(min=1, help="Number of seeds per system.", show_default="as declared")] = None
    only: Annotated[
        str,
        Option(help="Run only these systems or cells (SYSTEM/base-B/seed-S, with commas), and those that they need."),
    ] = ""
    cluster: Annotated[
        str, Option(help="Run cells on this Ray cluster (auto or an address); the folder must be shared.")
    ] = ""
    report_only: Annotated[bool, Option("--report-only", help="Run nothing; write the report again.")] = False
    results: Annotated[
        Path | None,
        Option(
            help="Folder for report and results.jsonl. The cells of a results.jsonl that is there do not run again.",
            show_default="OUT/report, for which all cells run",
        ),
    ] = None
    quiet: NoProgress = False
