"""The options of `codea1 sft-tester`; `fine_tuning` runs it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from codea1_agents.cli.options import SessionOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class SftTesterOptions(SessionOptions):
    """Fine-tune a tester on golden tests: it learns to write them for sampled programs that fail some of them.

    This is the warm-up before reinforcement learning (paper, 4.1), and by itself the paper's baseline SFT.

    \b
    Example:
      codea1 sft-tester base -p tiny:train --prompts tiny --tests 4 --max-tokens 56 --lr 3e-4 -o sft
    """

    model: Annotated[str, Argument(help="Folder or hub id of the language model to fine-tune.")]
    out: Annotated[Path, Option("--out", "-o", help="Folder of the new model; must be new or empty.")]
    problems: Annotated[str, Option("--problems", "-p", help="Problem source with golden tests: a name or a path.")]
    prompts: Annotated[
        str, Option(help="Wording of the tester's prompts, in the lessons and later in play: a name or a file.")
    ] = "simple"
    coder: Annotated[
        str | None,
        Option(help="Agent that writes the programs (see codea1 agents).", show_default="the model, in that wording"),
    ] = None
    samples: Annotated[int, Option(min=1, help="Programs requested per problem.")] = 8
    tests: Annotated[int, Option(min=1, max=1000, help="Golden tests per lesson.")] = 8
    max_tokens: Annotated[int, Option(min=1, help="Longest program of the model, in tokens.")] = 1024
    epochs: Annotated[int, Option(min=1, help="Passes over the lessons.")] = 2
    lr: Annotated[float, Option(help="Highest learning rate.")] = 1e-5
    lessons_per_step: Annotated[int, Option(min=1, help="Lessons per optimiser step.")] = 16
    seed: Annotated[int, Option(min=0, help="Seed of programs, tests and order.")] = 0
