"""The options of `codea1 pretrain`; `pretraining` runs it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

from codea1_agents.cli.options import NoProgress, Options, output, sandbox_name, seed_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainOptions(Options):
    """Pretrain a tiny language model: a coder and a tester for generated problems, both mostly wrong.

    \b
    Example:
      codea1 pretrain --out base --evaluate
      codea1 play --problems tiny --coder transformers,model=base,prompts=tiny --tester fuzz
    """

    out: Annotated[Path, output("Folder of the model; must be new or empty.")] = Path("models/tiny")
    seed: Annotated[int, seed_of("the weights and the corpus")] = 0
    steps: Annotated[int | None, Option(min=1, help="Optimiser steps.", show_default="the size's own")] = None
    size: Annotated[str, Option(help="laptop (0.5 million parameters, minutes on one core) or gpu (30 million).")] = (
        "laptop"
    )
    variant: Annotated[
        str,
        Option(
            help="plain, or mistakes that naive inputs do not find: rare or deep-rare (problems tiny:rare-train...)."
        ),
    ] = "plain"
    aware: Annotated[
        float, Option(min=0, max=1, help="Share of the white-box tests whose inputs hit the shown program's mistake.")
    ] = 0.0
    aware_first: Annotated[int, Option(min=0, help="Steps, from the first, in which all of these tests hit it.")] = 0
    evaluate: Annotated[
        bool, Option("--evaluate", help="Then measure the model on training and held-out problems.")
    ] = False
    sandbox: Annotated[str, sandbox_name("Sandbox that runs the programs of --evaluate.")] = "local"
    quiet: NoProgress = False
