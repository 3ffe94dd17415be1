"""`codea1 select`: the options. What it does: `evaluating_selection`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from codea1_agents.cli.options import Json


def select(
    coder: Annotated[str, typer.Option(help="Who writes the candidates (see codea1 agents).")],
    tester: Annotated[str, typer.Option(help="Who writes the suites, blind to the candidates.")],
    problems: Annotated[str, typer.Option(help="Source by name or path.")] = "humaneval",
    candidates: Annotated[int, typer.Option("--candidates", "-n", min=1, help="N, per problem.")] = 16,
    suites: Annotated[int, typer.Option("--suites", "-m", min=1, help="M, per problem.")] = 16,
    tests: Annotated[int, typer.Option(min=1, max=1000, help="Tests asked for per suite.")] = 8,
    seed: Annotated[int, typer.Option(min=0, help="Of the agents and the intervals.")] = 0,
    sandbox: Annotated[str, typer.Option(help="Where programs run.")] = "local",
    limit: Annotated[
        int | None, typer.Option(min=1, help="Use only so many problems, from the front.", show_default="all")
    ] = None,
    without: Annotated[str, typer.Option(help="Problems to leave out, by id, with commas between them.")] = "",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for records and figures; the same command goes on with what is there.", show_default="none"
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Choose among candidates by tests written blind: the one that passes most distinct tests (paper, table 5).

    Tells the share of right programs before and after the choice, and how often the tie-break decides.

    \b
    Example:
      codea1 select --coder mutant --tester boundary --problems starter -n 8 -m 4
    """
    from codea1_agents.cli.evaluating import Asked  # noqa: PLC0415  heavy
    from codea1_agents.cli.evaluating_selection import run_select  # noqa: PLC0415  heavy

    asked = Asked(problems=problems, seed=seed, sandbox=sandbox, limit=limit, without=without, out=out, as_json=as_json)
    run_select(asked, coder, tester, candidates=candidates, suites=suites, tests=tests)
