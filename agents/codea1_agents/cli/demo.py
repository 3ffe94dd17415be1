"""The options of `codea1 demo coevolve`; `coevolving` runs it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

from codea1_agents.cli.options import Options, SummaryOnly, output, seed_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CoevolveOptions(Options):
    """Train a coder and a tester against each other from scratch, on a laptop.

    Pretrains a model of half a million parameters, trains two copies of it against each other, and ends with a picture
    and a sentence about what they learned. After an interruption, the same command continues.

    \b
    Example:
      codea1 demo coevolve
    """

    out: Annotated[Path, output("Folder; the same command continues in it.")] = Path("runs/coevolve")
    seed: Annotated[int, seed_of("all randomness")] = 0
    steps: Annotated[int | None, Option(min=1, help="Training steps.", show_default="as in the preset coevolve")] = None
    quiet: SummaryOnly = False
