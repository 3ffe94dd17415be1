"""`codea1 crossplay`: the options. What it does: `crossplaying`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from codea1_agents.cli.options import Json, takes


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossplayOptions:
    """The options."""

    players: Annotated[
        list[str] | None,
        typer.Argument(
            help="RUN (of codea1 train), RUN@STEP, RUN@base, RUN/models/ROLE, or an agent; each plays what it can."
            " NAME=... gives it a name.",
            show_default=False,
        ),
    ] = None
    coders: Annotated[
        list[str] | None, typer.Option("--coders", help="Who only writes programs; repeat it.", show_default="none")
    ] = None
    testers: Annotated[
        list[str] | None, typer.Option("--testers", help="Who only writes suites; repeat it.", show_default="none")
    ] = None
    yardsticks: Annotated[
        bool, typer.Option("--yardsticks/--no-yardsticks", help="Also mutant, fuzz and boundary, as fixed points.")
    ] = True
    problems: Annotated[str, typer.Option("--problems", "-p", help="Source by name or path.")] = "starter"
    samples: Annotated[int, typer.Option("--samples", "-n", min=1, help="Programs per coder and problem.")] = 4
    tests: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Tests asked for per suite.", show_default="the preset's")
    ] = None
    transfer: Annotated[
        str, typer.Option(help="Stored suites that programs meet: others (other coders'), blind, or none.")
    ] = "others"
    rules: Annotated[str, typer.Option("--rules", "--preset", help="Preset of the rules.")] = "fixed"
    alpha: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Weight of validity in the tester's reward.", show_default="the preset's"),
    ] = None
    seed: Annotated[int, typer.Option(min=0, help="Of the agents and the intervals.")] = 0
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only so many problems, from the front.", show_default="all")
    ] = None
    sandbox: Annotated[str, typer.Option(help="Where programs run.")] = "local"
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Folder for results; RUN/crossplay shows up in RUN's report.", show_default=""
        ),
    ] = None
    as_json: Json = False


@takes(CrossplayOptions)
def crossplay(options: CrossplayOptions) -> None:
    """Let every coder meet every tester: matrices with intervals, ratings, an equilibrium.

    On policy the tester answers each program; transfer runs stored programs against suites not written for them.

    \b
    Example:
      codea1 crossplay runs/first@base runs/first -p tiny:held-out-eval -o runs/first/crossplay
    """
    from codea1_agents.cli.crossplaying import run_crossplay  # noqa: PLC0415  heavy

    run_crossplay(options)
