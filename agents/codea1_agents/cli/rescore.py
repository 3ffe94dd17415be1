"""The options of `codea1 rescore`; `rescoring` and `rescoring_sweep` run it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from codea1_agents.cli import completing
from codea1_agents.cli.options import Options, n_tests, output, rules_preset


@dataclass(frozen=True, slots=True, kw_only=True)
class RescoreOptions(Options):
    """Score a recorded run by other rules, without running any program.

    The recorded verdicts stay: rules that read replies, validate suites or compare values cannot change.

    \b
    Example:
      codea1 rescore runs/20260304-050607 --alpha 0.3
      codea1 rescore runs/20260304-050607 --sweep alpha=0,.25,.5,.75,1
    """

    run: Annotated[
        Path,
        Argument(help="Run folder of codea1 play; with --sweep also of codea1 train.", autocompletion=completing.runs),
    ]
    alpha: Annotated[
        float | None,
        Option("--alpha", min=0, max=1, help="Weight of validity in the tester's reward.", show_default="the run's"),
    ] = None
    rules: Annotated[
        str | None,
        rules_preset("Rules preset with the reward formulas.", show_default="the run's"),
    ] = None
    tests: Annotated[int | None, n_tests("Denominator K of the tester's reward.", show_default="the run's")] = None
    out: Annotated[Path | None, output("Also write the run with its new rewards into this new folder.")] = None
    sweep: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=VALUE,VALUE",
            help="Compare several settings of alpha, rules, tests (per suite) or replay (share of replayed cases that"
            " count); may be repeated to compare every combination.",
            show_default=False,
        ),
    ] = None
    picture: Annotated[Path | None, Option(help="With --sweep of one number: draw the result into this SVG file.")] = (
        None
    )
