"""All commands put together. Only signatures are imported here, so that `codea1 --help` is quick."""

from __future__ import annotations

from typing import Annotated

import typer

from codea1_agents.cli import (
    audit,
    book,
    check,
    crossplay,
    demo,
    doctor,
    evaluate,
    experiment,
    export_model,
    export_tests,
    game,
    listing,
    play,
    pretrain,
    report,
    rescore,
    sandbox,
    select,
    sft_tester,
    train,
)
from codea1_agents.cli.boundary import Boundary

app = typer.Typer(cls=Boundary, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="rich")


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415  only here

        typer.echo(f"codea1-env {version('codea1-env')}")
        raise typer.Exit


@app.callback()
def _codea1(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Two agents and a sandbox: a coder writes programs, a tester writes tests to break them.

    Exit codes: 0 done, 1 a check found something, 2 bad input, 3 the sandbox or an
    agent is not there, 130 interrupted, 141 nobody reads.
    """


app.command("play")(play.play)
app.command("rescore")(rescore.rescore)
app.command("report")(report.report)
app.add_typer(evaluate.app, name="eval")
app.command("select")(select.select)
app.command("train")(train.train)
app.command("presets")(listing.presets)
app.command("export-model")(export_model.export_model)
app.command("pretrain")(pretrain.pretrain)
app.command("sft-tester")(sft_tester.sft_tester)
app.command("export-tests")(export_tests.export_tests)
app.add_typer(game.app, name="game")
app.command("crossplay")(crossplay.crossplay)
app.add_typer(demo.app, name="demo")
app.command("experiment")(experiment.experiment)
app.add_typer(check.app, name="check")
app.add_typer(book.app, name="book")
app.add_typer(sandbox.app, name="sandbox")
app.command("audit")(audit.audit)
app.add_typer(listing.problems_app, name="problems")
app.command("agents")(listing.agents)
app.command("doctor")(doctor.doctor)
