"""`codea1 sft-tester`: the options. What it does: `fine_tuning`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from codea1_agents.cli.options import Json


def sft_tester(
    model: Annotated[str, typer.Argument(help="Folder or hub id of the language model to fine-tune.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the new model; must be new or empty.")],
    problems: Annotated[str, typer.Option("--problems", "-p", help="Source by name or path; with golden tests.")],
    prompts: Annotated[str, typer.Option(help="Wording for the tester, here and when it plays: a name or a file.")] = (
        "simple"
    ),
    coder: Annotated[
        str | None,
        typer.Option(help="Who writes the programs (see codea1 agents).", show_default="the model, in that wording"),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Programs asked for per problem.")] = 8,
    tests: Annotated[int, typer.Option(min=1, max=1000, help="Golden tests per lesson.")] = 8,
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest program of the model's own.")] = 1024,
    epochs: Annotated[int, typer.Option(min=1, help="How often each lesson is learnt from.")] = 2,
    lr: Annotated[float, typer.Option(help="Highest learning rate.")] = 1e-5,
    lessons_per_step: Annotated[int, typer.Option(min=1, help="Lessons per optimiser step.")] = 16,
    seed: Annotated[int, typer.Option(min=0, help="Of programs, tests and order.")] = 0,
    sandbox: Annotated[str, typer.Option(help="Where programs run.")] = "local",
    limit: Annotated[
        int | None, typer.Option(min=1, help="Use only so many problems, from the front.", show_default="all")
    ] = None,
    as_json: Json = False,
) -> None:
    """Teach a tester from golden tests: sampled programs that fail some in, golden tests of their problems out.

    The warm-up before reinforcement learning (paper, 4.1), and by itself the paper's baseline SFT.

    \b
    Example:
      codea1 sft-tester base -p tiny:train --prompts tiny --tests 4 --max-tokens 56 --lr 3e-4 -o sft
    """
    from codea1_agents.cli.evaluating import Asked  # noqa: PLC0415  heavy
    from codea1_agents.cli.fine_tuning import run_sft_tester  # noqa: PLC0415  heavy
    from codea1_agents.coevolution.supervised import SupervisedSettings  # noqa: PLC0415  heavy

    asked = Asked(problems=problems, seed=seed, sandbox=sandbox, limit=limit, as_json=as_json)
    settings = SupervisedSettings(
        prompts=prompts,
        coder=coder or "",
        samples=samples,
        tests=tests,
        max_tokens=max_tokens,
        epochs=epochs,
        lessons_per_step=lessons_per_step,
        lr=lr,
        seed=seed,
    )
    run_sft_tester(asked, model, settings, out)
