"""Registers all commands. Imports only their options, so that `codea1 --help` is quick."""

from __future__ import annotations

from typing import Annotated

import typer

from codea1_agents.cli import (
    audit,
    book,
    check,
    crossplay,
    demo,
    evaluate,
    experiment,
    game,
    inventory,
    play,
    pretrain,
    report,
    rescore,
    sandbox,
    sft,
    train,
)
from codea1_agents.cli.boundary import Boundary
from codea1_agents.cli.options import add_command

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
    traceback: Annotated[bool, typer.Option("--traceback", help="Show where errors come from, line by line.")] = False,
) -> None:
    """A coder writes programs, a tester writes tests that break them, and a sandbox runs both.

    Exit codes: 0 done, 1 a check found a problem, 2 bad input, 3 the sandbox or an
    agent is unavailable, 130 interrupted, 141 the reader of the output has gone.
    """


def _group(name: str, about: str) -> typer.Typer:
    group = typer.Typer(no_args_is_help=True, help=about)
    app.add_typer(group, name=name)
    return group


add_command(app, "play", play.PlayOptions, "playing:run")
add_command(app, "rescore", rescore.RescoreOptions, "rescoring:run_rescore")
add_command(app, "report", report.ReportOptions, "reporting:run_report")
add_command(app, "select", evaluate.SelectOptions, "evaluating_selection:run_select")
add_command(app, "train", train.TrainOptions, "training_runs:run_training")
add_command(app, "presets", train.PresetsOptions, "training_runs:run_presets")
add_command(app, "export-model", train.ExportModelOptions, "training_runs:run_export")
add_command(app, "pretrain", pretrain.PretrainOptions, "pretraining:run_pretrain")
add_command(app, "sft", sft.SftOptions, "fine_tuning:run_sft")
add_command(app, "export-tests", evaluate.ExportTestsOptions, "evaluating_export:run_export")
add_command(app, "crossplay", crossplay.CrossplayOptions, "crossplaying:run_crossplay")
add_command(app, "experiment", experiment.ExperimentOptions, "experimenting:run_experiment")
add_command(app, "audit", audit.AuditOptions, "auditing:run_audit_command")
add_command(app, "agents", inventory.AgentsOptions, "listing:list_agents")
add_command(app, "doctor", inventory.DoctorOptions, "listing:show_machine")

_eval = _group("eval", "Measure coders and testers with standard figures.")
add_command(_eval, "coder", evaluate.CoderOptions, "evaluating_agents:run_coder")
add_command(_eval, "tester", evaluate.TesterOptions, "evaluating_agents:run_tester")
add_command(_eval, "compare", evaluate.CompareOptions, "evaluating_pairs:run_compare")

_game = _group("game", "Analyse the game as a matrix: equilibria, learning dynamics, effects of the rules.")
add_command(_game, "solve", game.SolveOptions, "game_commands:solve_game")
add_command(_game, "dynamics", game.DynamicsOptions, "game_commands:follow_dynamics")
add_command(_game, "questions", game.QuestionsOptions, "game_questions:answer_questions")

_demo = _group("demo", "Run demonstrations.")
add_command(_demo, "coevolve", demo.CoevolveOptions, "coevolving:run_coevolve")

_check = _group("check", "Check problems, the environment, an agent, a language model, or this machine's sandbox.")
add_command(_check, "problems", check.CheckProblemsOptions, "checking:run_check_problems")
add_command(_check, "env", check.CheckEnvOptions, "checking:run_check_env")
add_command(_check, "agent", check.CheckAgentOptions, "checking:run_check_agent")
add_command(_check, "model", check.CheckModelOptions, "checking_model:run_check_model")
add_command(_check, "sandbox", check.CheckSandboxOptions, "checking:run_check_sandbox")

_book = _group("book", "Show, study, minimise, export, merge and import Mistake Books.")
add_command(_book, "show", book.ShowOptions, "book_commands:show_book")
add_command(_book, "stats", book.StatsOptions, "book_history:show_statistics")
add_command(_book, "survival", book.SurvivalOptions, "book_history:show_survival")
add_command(_book, "relapses", book.RelapsesOptions, "book_history:show_relapses")
add_command(_book, "minimise", book.MinimiseOptions, "book_minimising:minimise_book")
add_command(_book, "export", book.ExportOptions, "book_commands:export_book")
add_command(_book, "merge", book.MergeOptions, "book_commands:merge_books")
add_command(_book, "import", book.ImportOptions, "book_commands:import_book")

_sandbox = _group("sandbox", "Clean up after sandboxes, or serve one over HTTP.")
add_command(_sandbox, "clean", sandbox.CleanOptions, "sandbox_commands:clean")
add_command(_sandbox, "serve", sandbox.ServeOptions, "sandbox_commands:serve")

_problems = _group("problems", "List problem sources.")
add_command(_problems, "list", inventory.ProblemsOptions, "listing:list_problems")
