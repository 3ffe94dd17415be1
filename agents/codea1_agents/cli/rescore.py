"""`codea1 rescore`: the options. What it does: `rescoring`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from codea1_agents.cli.options import Options


@dataclass(frozen=True, slots=True, kw_only=True)
class RescoreOptions(Options):
    """Score a recorded run by other rules, without running any program.

    The verdicts stay as they were found: how replies were read, suites validated and values compared cannot change.

    \b
    Example:
      codea1 rescore runs/20260304-050607 --alpha 0.3
      codea1 rescore runs/20260304-050607 --sweep alpha=0,.25,.5,.75,1
    """

    run: Annotated[Path, Argument(help="Run folder, of codea1 play, or with --sweep of codea1 train.")]
    alpha: Annotated[
        float | None, Option(min=0, max=1, help="Weight of validity in the tester's reward.", show_default="the run's")
    ] = None
    rules: Annotated[
        str | None, Option("--rules", "--preset", help="Preset of the formulas.", show_default="the run's")
    ] = None
    tests_per_suite: Annotated[
        int | None, Option(min=1, help="Denominator K of the tester's reward.", show_default="the run's")
    ] = None
    out: Annotated[Path | None, Option(help="Also write the run with its new rewards into this new folder.")] = None
    sweep: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=VALUE,VALUE",
            help="Compare many settings of alpha, rules, tests (per suite) or replay (share of replayed cases that"
            " count); several give every combination.",
            show_default=False,
        ),
    ] = None
    picture: Annotated[Path | None, Option(help="With --sweep of one number: draw it as SVG.")] = None
