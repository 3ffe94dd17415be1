"""`codea1 export-tests`: the options. What it does: `evaluating_export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from codea1_agents.cli.options import Json


def export_tests(
    agent: Annotated[str, typer.Option(help="The tester (see codea1 agents).")],
    out: Annotated[Path, typer.Option(help="File to write: Parquet if its name ends in .parquet, else JSON lines.")],
    problems: Annotated[str, typer.Option(help="Source by name or path.")] = "humaneval",
    suites: Annotated[int, typer.Option(min=1, help="Suites per problem; a test in several is written once.")] = 1,
    tests: Annotated[int, typer.Option(min=1, max=1000, help="Tests asked for per suite.")] = 8,
    coder: Annotated[
        str | None, typer.Option(help="Coder whose program the tester sees.", show_default="none: it is blind")
    ] = None,
    fill: Annotated[
        bool, typer.Option("--fill", help="Keep tests with a wrong prediction, with the solution's value instead.")
    ] = False,
    data_source: Annotated[
        str, typer.Option(help="Column data_source; the release pays for golden tests of kodcode_light only.")
    ] = "codea1-env",
    layout: Annotated[
        str, typer.Option(help="release: as its training rows; own: the whole problem with these golden tests.")
    ] = "release",
    seed: Annotated[int, typer.Option(min=0, help="Of the agents.")] = 0,
    sandbox: Annotated[str, typer.Option(help="Where programs run.")] = "local",
    limit: Annotated[
        int | None, typer.Option(min=1, help="Use only so many problems, from the front.", show_default="all")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a tester over problems and write its confirmed tests as golden tests (paper, table 4).

    The file is itself a source of problems: with --layout own, the same ones with other golden tests.

    \b
    Example:
      codea1 export-tests --agent boundary --problems starter --out tests.jsonl
    """
    from codea1_agents.cli.evaluating import Asked  # noqa: PLC0415  heavy
    from codea1_agents.cli.evaluating_export import run_export  # noqa: PLC0415  heavy
    from codea1_agents.evaluation.export import ExportTask, Layout  # noqa: PLC0415  heavy
    from codea1_env.errors import UnknownName  # noqa: PLC0415  with them

    if layout not in list(Layout):
        raise UnknownName.of("layout", layout, [each.value for each in Layout])
    task = ExportTask(suites=suites, tests=tests, fill=fill, data_source=data_source, layout=Layout(layout))
    asked = Asked(problems=problems, seed=seed, sandbox=sandbox, limit=limit, as_json=as_json)
    run_export(asked, agent, coder, task, out)
