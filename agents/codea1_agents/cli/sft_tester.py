"""`codea1 sft-tester`: the options. What it does: `fine_tuning`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from codea1_agents.cli.options import BenchOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class SftTesterOptions(BenchOptions):
    """Teach a tester from golden tests: sampled programs that fail some in, golden tests of their problems out.

    The warm-up before reinforcement learning (paper, 4.1), and by itself the paper's baseline SFT.

    \b
    Example:
      codea1 sft-tester base -p tiny:train --prompts tiny --tests 4 --max-tokens 56 --lr 3e-4 -o sft
    """

    model: Annotated[str, Argument(help="Folder or hub id of the language model to fine-tune.")]
    out: Annotated[Path, Option("--out", "-o", help="Folder of the new model; must be new or empty.")]
    problems: Annotated[str, Option("--problems", "-p", help="Source by name or path; with golden tests.")]
    prompts: Annotated[str, Option(help="Wording for the tester, here and when it plays: a name or a file.")] = "simple"
    coder: Annotated[
        str | None,
        Option(help="Who writes the programs (see codea1 agents).", show_default="the model, in that wording"),
    ] = None
    samples: Annotated[int, Option(min=1, help="Programs asked for per problem.")] = 8
    tests: Annotated[int, Option(min=1, max=1000, help="Golden tests per lesson.")] = 8
    max_tokens: Annotated[int, Option(min=1, help="Longest program of the model's own.")] = 1024
    epochs: Annotated[int, Option(min=1, help="How often each lesson is learnt from.")] = 2
    lr: Annotated[float, Option(help="Highest learning rate.")] = 1e-5
    lessons_per_step: Annotated[int, Option(min=1, help="Lessons per optimiser step.")] = 16
    seed: Annotated[int, Option(min=0, help="Of programs, tests and order.")] = 0
