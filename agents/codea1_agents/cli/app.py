"""All commands in order. A command's module is imported only when the command is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer.core import TyperCommand
from typer.main import get_command, get_group

from codea1_agents.cli.boundary import Boundary, KnowsOldNames
from codea1_agents.cli.options import add_command

Command = tuple[str, str]
"""The dataclass of a command's options and the function that runs it, as `module:name` in this package."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One name of the first level."""

    panel: str
    """Heading in the help."""
    about: str
    """One line in the help."""
    commands: Command | Mapping[str, Command]
    """The command, or those of a group by name."""

    def load(self, name: str) -> Any:
        """Return the command or group; imports its options."""
        app = typer.Typer(cls=KnowsOldNames, add_completion=False, no_args_is_help=True, help=self.about)
        if isinstance(self.commands, tuple):
            add_command(app, name, *self.commands)
            return get_command(app)
        for each, command in self.commands.items():
            add_command(app, each, *command)
        group = get_group(app)
        group.name = name
        return group


_PLAY, _TRAIN, _MEASURE, _LOOK, _CHECK = "Play", "Train", "Measure", "Look", "Check and list"

ENTRIES = {
    "play": Entry(
        _PLAY, "Play games between a coder and a tester, and record them.", ("play:PlayOptions", "playing:run")
    ),
    "demo": Entry(
        _PLAY,
        "Run a demonstration: two small agents learn from nothing.",
        {"coevolve": ("demo:CoevolveOptions", "coevolving:run_coevolve")},
    ),
    "train": Entry(
        _TRAIN, "Train both agents with reinforcement learning.", ("train:TrainOptions", "training_runs:run_training")
    ),
    "sft": Entry(_TRAIN, "Fine-tune a model on problems first.", ("sft:SftOptions", "fine_tuning:run_sft")),
    "pretrain": Entry(
        _TRAIN, "Pretrain a tiny model from nothing.", ("pretrain:PretrainOptions", "pretraining:run_pretrain")
    ),
    "experiment": Entry(
        _TRAIN,
        "Run a grid of trainings and report on it.",
        ("experiment:ExperimentOptions", "experimenting:run_experiment"),
    ),
    "eval": Entry(
        _MEASURE,
        "Measure coders and testers with standard figures.",
        {
            "coder": ("evaluate:CoderOptions", "evaluating_agents:run_coder"),
            "tester": ("evaluate:TesterOptions", "evaluating_agents:run_tester"),
            "select": ("evaluate:SelectOptions", "evaluating_selection:run_select"),
            "compare": ("evaluate:CompareOptions", "evaluating_pairs:run_compare"),
        },
    ),
    "crossplay": Entry(
        _MEASURE,
        "Play every coder against every tester.",
        ("crossplay:CrossplayOptions", "crossplaying:run_crossplay"),
    ),
    "rescore": Entry(
        _MEASURE, "Score a recorded run by other rules.", ("rescore:RescoreOptions", "rescoring:run_rescore")
    ),
    "game": Entry(
        _MEASURE,
        "Analyse the game as a matrix: equilibria, learning dynamics.",
        {
            "solve": ("game:SolveOptions", "game_commands:solve_game"),
            "dynamics": ("game:DynamicsOptions", "game_commands:follow_dynamics"),
            "tabular": ("game:TabularOptions", "game_tabular:train_tables"),
            "rewards": ("game:RewardsOptions", "game_tabular:compare_rewards"),
            "aim": ("game:AimOptions", "game_tabular:say_whether_to_aim"),
            "questions": ("game:QuestionsOptions", "game_questions:answer_questions"),
        },
    ),
    "report": Entry(_LOOK, "Write runs as one HTML file.", ("report:ReportOptions", "reporting:run_report")),
    "book": Entry(
        _LOOK,
        "Show, study, minimise, export, merge, import Mistake Books.",
        {
            "show": ("book:ShowOptions", "book_commands:show_book"),
            "stats": ("book:StatsOptions", "book_history:show_statistics"),
            "survival": ("book:SurvivalOptions", "book_history:show_survival"),
            "relapses": ("book:RelapsesOptions", "book_history:show_relapses"),
            "minimise": ("book:MinimiseOptions", "book_minimising:minimise_book"),
            "export": ("book:ExportOptions", "book_commands:export_book"),
            "merge": ("book:MergeOptions", "book_commands:merge_books"),
            "import": ("book:ImportOptions", "book_commands:import_book"),
        },
    ),
    "export": Entry(
        _LOOK,
        "Write a tester's tests as training rows, or a trained model.",
        {
            "tests": ("export:ExportTestsOptions", "exporting_tests:run_export_tests"),
            "model": ("export:ExportModelOptions", "exporting_model:run_export_model"),
        },
    ),
    "check": Entry(
        _CHECK,
        "Check problems, agents, the environment, models, this machine.",
        {
            "problems": ("check:CheckProblemsOptions", "checking:run_check_problems"),
            "agent": ("check:CheckAgentOptions", "checking:run_check_agent"),
            "env": ("check:CheckEnvOptions", "checking:run_check_env"),
            "model": ("check:CheckModelOptions", "checking_model:run_check_model"),
            "machine": ("check:CheckMachineOptions", "checking:run_check_machine"),
        },
    ),
    "sandbox": Entry(
        _CHECK,
        "Attack a sandbox, check it, clean up.",
        {
            "audit": ("sandbox:AuditOptions", "auditing:run_audit_command"),
            "check": ("sandbox:CheckOptions", "sandbox_commands:run_check_sandbox"),
            "clean": ("sandbox:CleanOptions", "sandbox_commands:clean"),
        },
    ),
    "serve": Entry(_CHECK, "Serve the judge and the sandbox over HTTP.", ("serve:ServeOptions", "serving:run_serve")),
    "list": Entry(
        _CHECK,
        "List agents, problems, rewards, sandboxes, presets, prompts.",
        {
            "agents": ("listed:AgentsOptions", "listing:list_agents"),
            "problems": ("listed:ProblemsOptions", "listing:list_problems"),
            "rewards": ("listed:RewardsOptions", "listing:list_rewards"),
            "sandboxes": ("listed:SandboxesOptions", "listing:list_sandboxes"),
            "presets": ("listed:PresetsOptions", "listing:list_presets"),
            "prompts": ("listed:PromptsOptions", "listing:list_prompts"),
        },
    ),
}


def all_commands() -> dict[str, Any]:
    """Return every command by its whole name, such as `eval coder`; imports all options."""
    found = {}
    for name, entry in ENTRIES.items():
        command = entry.load(name)
        parts = getattr(command, "commands", None)
        found.update({name: command} if parts is None else {f"{name} {each}": part for each, part in parts.items()})
    return found


_TYPERS_OPTIONS = {
    "install_completion": "Install completion for this shell.",
    "show_completion": "Print the completion of this shell.",
}


class Commands(Boundary):
    """The group of all commands. Until one is chosen, a command is its line in the help."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, entry in ENTRIES.items():
            self.add_command(TyperCommand(name, help=entry.about, rich_help_panel=entry.panel))

    def get_params(self, ctx: Any) -> Any:
        """Return the options; those of typer with a help of one line."""
        found: list[Any] = [*super().get_params(ctx)]
        for each in found:
            each.help = _TYPERS_OPTIONS.get(each.name, each.help)
        return found

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name, the whole command, and the arguments that remain."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and ENTRIES[name].load(name), rest


app = typer.Typer(cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="rich")


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
    traceback: Annotated[bool, typer.Option("--traceback", help="Show where errors come from.")] = False,
) -> None:
    """A coder against a tester. Exit: 0 done, 1 failed, 2 bad input, 3 unavailable."""
