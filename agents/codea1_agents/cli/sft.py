"""The options of `codea1 sft`; `fine_tuning` runs it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from codea1_agents.cli import completing
from codea1_agents.cli.options import Problems, Prompts, SessionOptions, agent_spec, how_many, n_tests, output, seed_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SftOptions(SessionOptions):
    """Fine-tune a model on problems, before reinforcement learning: a coder on solutions, a tester on golden tests.

    The loss counts the replies only. The result is a plain folder of transformers. Held-out problems are measured
    before and after. Ctrl-C ends the training after the present step and writes the model as it is then.

    \b
    Example:
      codea1 sft Qwen/Qwen2.5-Coder-0.5B-Instruct -p my.jsonl -o models/warm
      codea1 sft base -p tiny:train --role tester --coder self --failing --prompts tiny --tests 4 --lr 1e-3 -o sft
    """

    model: Annotated[str, Argument(help="Folder or hub id of the language model to fine-tune.")]
    out: Annotated[Path, output("Folder of the new model; must be new or empty.")]
    problems: Problems
    role: Annotated[str, Option(help="coder, tester, or both: one model for both roles.")] = "both"
    held_out: Annotated[
        str,
        Option(
            help="Problem source to measure on.",
            show_default="an eighth of the problems, not trained on",
            autocompletion=completing.sources,
        ),
    ] = ""
    measured: Annotated[
        int, Option(min=0, help="Held-out problems on which the model plays, before and after; 0: only their loss.")
    ] = 16
    prompts: Prompts = "default"
    coder: Annotated[
        str,
        agent_spec(
            "--coder", "Agent that writes the programs that the tester sees (see codea1 list agents); self: the model."
        ),
    ] = "mutant,strength=0.75"
    failing: Annotated[
        bool, Option("--failing", help="Show the tester only programs that fail a golden test (paper, 4.1).")
    ] = False
    samples: Annotated[
        int, how_many("--samples", "Programs per problem, and replies per problem that is measured.")
    ] = 4
    tests: Annotated[int, n_tests()] = 8
    shortest: Annotated[
        int | None,
        Option(
            min=1, help="Only so many golden tests of a problem, the shortest: easier to predict.", show_default="all"
        ),
    ] = None
    max_reply_tokens: Annotated[int, Option(min=1, help="Longest reply where the model samples, in tokens.")] = 1024
    epochs: Annotated[int, Option(min=1, help="Passes over the examples.")] = 2
    lr: Annotated[float, Option(help="Highest learning rate.")] = 1e-5
    examples_per_step: Annotated[int, Option(min=1, help="Examples per optimiser step.")] = 16
    max_tokens: Annotated[
        int, Option(min=1, help="Longest prompt and reply together, in tokens; longer examples are left out.")
    ] = 4096
    tokens_at_once: Annotated[int, Option(min=1, help="Tokens per forward pass, with padding; bounds memory.")] = 8192
    logits_at_once: Annotated[int, Option(min=0, help="Reply tokens whose logits exist at a time; 0: all.")] = 256
    lora: Annotated[int, Option(min=0, help="Rank of adapters to train instead of the model; 0: the model.")] = 0
    autocast: Annotated[str, Option(help="Data type of the computation, e.g. bfloat16.", show_default="float32")] = ""
    gradient_checkpointing: Annotated[
        bool, Option("--gradient-checkpointing", help="Compute activations again instead of storing them.")
    ] = False
    seed: Annotated[int, seed_of("programs, tests, order, held-out problems and replies")] = 0
