"""`codea1 export-model`: the options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from codea1_agents.cli.options import Json


def export_model(
    source: Annotated[Path, typer.Argument(help="Run folder of codea1 train, or one of its checkpoints.")],
    role: Annotated[str, typer.Option(help="coder or tester.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Directory to write, new or empty.")],
    as_json: Json = False,
) -> None:
    """Write a trained model as a plain directory that transformers loads: weights, configuration, tokenizer.

    \b
    Example:
      codea1 export-model runs/first --role coder -o models/coder
    """
    from codea1_agents.cli.training_runs import run_export  # noqa: PLC0415  heavy

    run_export(source, role, out, as_json=as_json)
