"""The options of `codea1 train`; `training_runs` runs it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from codea1_agents.cli import completing
from codea1_agents.cli.options import Options, SummaryOnly, output, problem_source


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOptions(Options):
    """Train a coder and a tester against each other with GRPO, configured by a TOML file or a preset.

    Every run writes a folder: config.toml, metrics.jsonl (one line per step), checkpoints, samples, models, and
    TensorBoard events.
    Ctrl-C finishes the step, saves, and prints how to continue; a second one discards the step.
    docs/training.md describes the settings, docs/figures.md the figures.

    \b
    Example:
      codea1 train my_run.toml --set run.steps=20 --set training.lr=3e-6 -o runs/first
      codea1 train paper-7b --dry-run --on "8 x H100 80GB"
      codea1 train code-a1 --coder models/mine --tester models/mine --problems my.jsonl --steps 200
    """

    config: Annotated[
        str | None,
        Argument(
            help="A TOML file, or a preset (see codea1 list presets).",
            show_default=False,
            autocompletion=completing.presets,
        ),
    ] = None
    changes: Annotated[
        list[str] | None,
        Option("--set", help="Change a setting: section.key=value; may be repeated.", metavar="KEY=VALUE"),
    ] = None
    coder: Annotated[str, Option(help="Model that the coder starts with: agents.coder.model.", show_default=False)] = ""
    tester: Annotated[
        str, Option(help="Model that the tester starts with: agents.tester.model.", show_default=False)
    ] = ""
    problems: Annotated[str, problem_source("Problems to train on: game.problems.", show_default=False)] = ""
    held_out: Annotated[
        str,
        Option(
            help="Problems to evaluate on: evaluation.problems.",
            show_default=False,
            autocompletion=completing.sources,
        ),
    ] = ""
    steps: Annotated[int | None, Option(min=1, help="Iterations: run.steps.", show_default=False)] = None
    out: Annotated[Path | None, output("Run folder, new or empty.", show_default="a new one under runs/")] = None
    resume: Annotated[
        Path | None,
        Option(help="Continue the run in this folder from its last checkpoint.", autocompletion=completing.runs),
    ] = None
    dry_run: Annotated[
        bool, Option("--dry-run", help="Print memory, placement and minutes of a step by arithmetic; run nothing.")
    ] = False
    on: Annotated[
        str | None,
        Option(help="GPUs of the dry run, e.g. '24GB' or '8 x H100 80GB'.", show_default="those of this machine"),
    ] = None
    force: Annotated[bool, Option("--force", help="Start a run that does not fit this machine.")] = False
    duels: Annotated[bool, Option("--duels", help="Show a duel of each step: program, tests, verdicts.")] = False
    quiet: SummaryOnly = False
