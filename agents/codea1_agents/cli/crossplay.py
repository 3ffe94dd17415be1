"""`codea1 crossplay`: the options. What it does: `crossplaying`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from codea1_agents.cli.options import Alpha, BenchOptions, Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossplayOptions(BenchOptions):
    """Let every coder meet every tester: matrices with intervals, ratings, an equilibrium.

    On policy the tester answers each program; transfer runs stored programs against suites not written for them.

    \b
    Example:
      codea1 crossplay runs/first@base runs/first -p tiny:held-out-eval -o runs/first/crossplay
    """

    players: Annotated[
        list[str] | None,
        Argument(
            help="RUN (of codea1 train), RUN@STEP, RUN@base, RUN/models/ROLE, or an agent; each plays what it can."
            " NAME=... gives it a name.",
            show_default=False,
        ),
    ] = None
    coders: Annotated[
        list[str] | None, Option("--coders", help="Who only writes programs; repeat it.", show_default="none")
    ] = None
    testers: Annotated[
        list[str] | None, Option("--testers", help="Who only writes suites; repeat it.", show_default="none")
    ] = None
    yardsticks: Annotated[
        bool, Option("--yardsticks/--no-yardsticks", help="Also mutant, fuzz and boundary, as fixed points.")
    ] = True
    problems: Annotated[str, Option("--problems", "-p", help="Source by name or path.")] = "starter"
    samples: Annotated[int, Option("--samples", "-n", min=1, help="Programs per coder and problem.")] = 4
    tests: Annotated[
        int | None, Option(min=1, max=1000, help="Tests asked for per suite.", show_default="the preset's")
    ] = None
    transfer: Annotated[
        str, Option(help="Stored suites that programs meet: others (other coders'), blind, or none.")
    ] = "others"
    rules: Rules = "fixed"
    alpha: Alpha = None
    out: Annotated[
        Path | None,
        Option("--out", "-o", help="Folder for results; RUN/crossplay shows up in RUN's report.", show_default=""),
    ] = None
