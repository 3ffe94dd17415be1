"""`codea1 demo`: the options. What it does: `coevolving`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

from codea1_agents.cli.options import Options, SummaryOnly


@dataclass(frozen=True, slots=True, kw_only=True)
class CoevolveOptions(Options):
    """Watch a coder and a tester co-evolve from nothing, on a laptop.

    Pretrains a model of half a million parameters, trains two copies of it against each other, and ends with a picture
    and a sentence about what was learned. Interrupted, the same command goes on.

    \b
    Example:
      codea1 demo coevolve
    """

    out: Annotated[Path, Option("--out", "-o", help="Folder; the same command goes on there.")] = Path("runs/coevolve")
    seed: Annotated[int, Option(min=0, help="Of everything.")] = 0
    steps: Annotated[int | None, Option(min=1, help="Of training.", show_default="as the preset coevolve says")] = None
    quiet: SummaryOnly = False
