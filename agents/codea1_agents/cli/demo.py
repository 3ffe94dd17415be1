"""`codea1 demo`: the options. What it does: `coevolving`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from codea1_agents.cli.options import Json

app = typer.Typer(no_args_is_help=True, help="Things to watch.")


@app.callback()
def _demo() -> None:
    """Keep `coevolve` a command of its own."""


@app.command("coevolve")
def coevolve(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder; the same command goes on there.")] = Path(
        "runs/coevolve"
    ),
    seed: Annotated[int, typer.Option(min=0, help="Of everything.")] = 0,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Of training.", show_default="as the preset coevolve says")
    ] = None,
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the summary.")] = False,
) -> None:
    """Watch a coder and a tester co-evolve from nothing, on a laptop.

    Pretrains a model of half a million parameters, trains two copies of it against each other, and ends with a picture
    and a sentence about what was learned. Interrupted, the same command goes on.

    \b
    Example:
      codea1 demo coevolve
    """
    from codea1_agents.cli.coevolving import run_coevolve  # noqa: PLC0415  heavy

    run_coevolve(out, seed=seed, steps=steps, as_json=as_json, quiet=quiet)
