"""`codea1 train`: the options. What it does: `training_runs`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from codea1_agents.cli.options import Json


def train(
    config: Annotated[
        str | None, typer.Argument(help="A TOML file, or a preset (see codea1 presets).", show_default=False)
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="Replace a setting: section.key=value, as often as needed.", metavar="KEY=VALUE"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Run folder, new or empty.", show_default="a new one under runs/")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Continue the run in this folder from its last checkpoint.")
    ] = None,
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the summary.")] = False,
) -> None:
    """Train a coder and a tester against each other with GRPO, as a TOML file or a preset says.

    Every run writes a folder: config.toml, metrics.jsonl (one line per step), checkpoints, samples, models, events of
    TensorBoard.
    Ctrl-C finishes the step, saves, and says how to continue. Settings and figures: docs/training.md.

    \b
    Example:
      codea1 train my_run.toml --set run.steps=20 --set training.lr=3e-6 -o runs/first
    """
    from codea1_agents.cli.training_runs import run_training  # noqa: PLC0415  heavy

    run_training(config, changes or [], out=out, resume=resume, as_json=as_json, quiet=quiet)
