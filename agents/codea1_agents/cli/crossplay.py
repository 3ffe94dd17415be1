"""The options of `codea1 crossplay`; `crossplaying` runs it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from codea1_agents.cli import completing
from codea1_agents.cli.options import Alpha, Problems, Rules, SessionOptions, agent_spec, how_many, n_tests, output


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossplayOptions(SessionOptions):
    """Play every coder against every tester: matrices with intervals, ratings, an equilibrium.

    On policy, the tester writes a suite for each program. Transfer runs stored programs against suites that were not
    written for them.

    \b
    Example:
      codea1 crossplay runs/first@base runs/first -p tiny:held-out-eval -o runs/first/crossplay
    """

    players: Annotated[
        list[str] | None,
        Argument(
            help="RUN (of codea1 train), RUN@STEP, RUN@base, RUN/models/ROLE, or an agent; each plays every role that"
            " it can. NAME=... gives it a name.",
            show_default=False,
            autocompletion=completing.players,
        ),
    ] = None
    coders: Annotated[
        list[str] | None,
        agent_spec("--coders", "A player that is only a coder; may be repeated.", show_default="none"),
    ] = None
    testers: Annotated[
        list[str] | None,
        agent_spec("--testers", "A player that is only a tester; may be repeated.", show_default="none"),
    ] = None
    yardsticks: Annotated[
        bool, Option("--yardsticks/--no-yardsticks", help="Add mutant, fuzz and boundary as fixed references.")
    ] = True
    problems: Problems = "starter"
    samples: Annotated[int, how_many("--samples", "Programs per coder and problem.")] = 4
    tests: Annotated[int | None, n_tests(show_default="the preset's")] = None
    transfer: Annotated[
        str, Option(help="Stored suites to run programs on: others (written for other coders), blind, or none.")
    ] = "others"
    rules: Rules = "fixed"
    alpha: Alpha = None
    out: Annotated[
        Path | None,
        output("Folder for results; RUN/crossplay appears in the report of RUN.", show_default="none"),
    ] = None
