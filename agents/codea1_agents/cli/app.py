"""All commands in order. A command's module is imported only when it is chosen, so that the first help is quick."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from codea1_agents.cli.boundary import Boundary
from codea1_agents.cli.entries import CHECK, LOOK, MEASURE, PLAY, TRAIN, Entry, PlainFlags, with_extensions

_HERE = "codea1_agents.cli"


def _commands(functions: str, *names: str) -> dict[str, str]:
    """Return commands by name; in the `module:function` of each, `{}` is its name."""
    return {name: f"{_HERE}.{functions.format(name)}" for name in names}


ENTRIES = with_extensions(
    {
        "play": Entry(PLAY, "Play games between a coder and a tester, and record them.", f"{_HERE}.play:run_play"),
        "demo": Entry(
            PLAY,
            "Be the tester in a duel; watch two small agents learn.",
            {"duel": f"{_HERE}.demo_duel:run_duel", "coevolve": f"{_HERE}.demo:run_coevolve"},
        ),
        "new": Entry(
            PLAY,
            "Write a file to begin with: a problem, agents, a reward.",
            _commands("new:new_{}", "problem", "agent", "reward"),
        ),
        "train": Entry(TRAIN, "Train both agents with reinforcement learning.", f"{_HERE}.train:run_training"),
        "sft": Entry(TRAIN, "Fine-tune a model on problems first.", f"{_HERE}.sft:run_sft"),
        "pretrain": Entry(TRAIN, "Pretrain a tiny model from nothing.", f"{_HERE}.pretrain:run_pretrain"),
        "eval": Entry(
            MEASURE,
            "Measure coders and testers with standard figures.",
            _commands("eval_agents:run_{}", "coder", "tester") | _commands("eval_{0}:run_{0}", "select", "compare"),
        ),
        "grade": Entry(MEASURE, "Judge one program by one suite of tests.", f"{_HERE}.grade:run_grade"),
        "book": Entry(LOOK, "Show and study Mistake Books.", _commands("book:{}_book", "show")),
        "export": Entry(
            LOOK,
            "Write a tester's tests as training rows, or a trained model.",
            _commands("export:run_export_{}", "tests", "model"),
        ),
        "check": Entry(
            CHECK,
            "Check problems, agents, models, this machine.",
            _commands("check:run_check_{}", "problems", "agent")
            | _commands("check_model:run_check_{}", "model")
            | _commands("check:run_check_{}", "machine"),
        ),
        "sandbox": Entry(
            CHECK,
            "Attack a sandbox, check it.",
            {"audit": f"{_HERE}.sandbox_audit:run_audit_command", "check": f"{_HERE}.sandbox:run_check_sandbox"},
        ),
        "serve": Entry(CHECK, "Serve the judge and the sandbox over HTTP.", f"{_HERE}.serve:run_serve"),
        "list": Entry(
            CHECK,
            "List agents, problems, rules, sandboxes, presets and more.",
            _commands("listing:list_{}", "agents", "problems", "rules", "rewards", "sandboxes", "presets", "prompts"),
        ),
    }
)


class Commands(PlainFlags, Boundary):
    """The group of all commands. Until one is chosen, a command is its line in the help."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, entry in ENTRIES.items():
            self.add_command(TyperCommand(name, help=entry.about, rich_help_panel=entry.panel))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name, the whole command, and the arguments that remain."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else ENTRIES[name].load(name), rest


app = typer.Typer(cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="rich")


def _show_version(is_asked: bool) -> None:
    if is_asked:
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
    """A coder against a tester. Exit: 0 done, 1 failed, 2 bad input, 3 unavailable, 130 interrupted."""
