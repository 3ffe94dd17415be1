"""Registers commands, and declares the options that several commands share: each letter and name once.

The options of a command are the fields of one dataclass; the docstring of the class is the command's help.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, get_type_hints

from typer import Option, Typer

from codea1_agents.cli import completing

DEFAULT_SOURCE = "humaneval"
"""Equals `codea1_env.problems.DEFAULT_SOURCE`, whose import would slow `--help` down; a test compares the two."""

REPLY_TIMEOUT_S = 600.0
"""Equals `codea1_agents.play.call_thread.REPLY_TIMEOUT_S`; a test compares the two, too."""


def agent_spec(name: str, about: str, **settings: Any) -> Any:
    """Return the declaration of an option that takes an agent."""
    return Option(name, help=about, autocompletion=completing.agents, **settings)


def how_many(name: str, about: str, **settings: Any) -> Any:
    """Return the declaration of the option of a command that says how many: `-n`."""
    return Option(name, "-n", min=1, help=about, **settings)


def output(about: str, **settings: Any) -> Any:
    """Return the declaration of the option that names the command's file or folder."""
    return Option("--out", "-o", help=about, **settings)


def problem_source(about: str = "Problem source: a name or a path.", **settings: Any) -> Any:
    """Return the declaration of the option that names the problems."""
    return Option("--problems", "-p", help=about, autocompletion=completing.sources, **settings)


def rules_preset(
    about: str = f"Rules preset: {', '.join(completing.RULES)}; or the name of a reward (codea1 list rewards).",
    **settings: Any,
) -> Any:
    """Return the declaration of the option that names the rules."""
    return Option("--rules", help=about, autocompletion=completing.rules, **settings)


def sandbox_name(about: str = "Sandbox that runs the programs.", **settings: Any) -> Any:
    """Return the declaration of the option that names the sandbox."""
    return Option("--sandbox", help=about, autocompletion=completing.sandboxes, **settings)


def seed_of(what: str, **settings: Any) -> Any:
    """Return the declaration of the option that seeds `what`."""
    return Option("--seed", min=0, help=f"Seed of {what}.", **settings)


def only_first(what: str = "problems", **settings: Any) -> Any:
    """Return the declaration of the option that leaves out all but the first."""
    return Option("--limit", min=1, help=f"Use only the first so many {what}.", **settings)


def n_suites(about: str) -> Any:
    """Return the declaration of the option with the number of suites."""
    return Option("--suites", "-m", min=1, help=about)


def n_tests(about: str = "Tests requested per suite.", **settings: Any) -> Any:
    """Return the declaration of the option with the number of tests."""
    return Option("--tests", min=1, max=1000, help=about, **settings)


Alpha = Annotated[
    float | None,
    Option("--alpha", min=0, max=1, help="Weight of validity in the tester's reward.", show_default="the preset's"),
]
Limit = Annotated[int | None, only_first(show_default="all")]
NoProgress = Annotated[bool, Option("--quiet", "-q", help="Do not show progress.")]
Problems = Annotated[str, problem_source()]
Prompts = Annotated[
    str, Option("--prompts", help="Wording of the prompts: a name or a file.", autocompletion=completing.prompts)
]
ReplyTimeout = Annotated[
    float,
    Option("--reply-timeout", min=0, help="Seconds after which a reply is given up and its game is masked; 0: never."),
]
Rules = Annotated[str, rules_preset()]
Sandbox = Annotated[str, sandbox_name()]
SummaryOnly = Annotated[bool, Option("--quiet", "-q", help="Print only the summary.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The option of every command."""

    as_json: Annotated[
        bool, Option("--json", help="Print one JSON object on stdout and everything else on stderr.")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions(Options):
    """The options of the commands that run agents on problems."""

    problems: Problems
    seed: Annotated[int, seed_of("the agents and the intervals")] = 0
    sandbox: Sandbox = "local"
    limit: Limit = None
    quiet: NoProgress = False


def require_out_or_resume(out: Path | None, resume: Path | None) -> None:
    """Raise UserError if both `--out` and `--resume` are given."""
    if out is not None and resume is not None:
        from codea1_env.errors import UserError  # noqa: PLC0415  slow to import for `--help`

        raise UserError("--out and --resume exclude each other: a resumed run stays in its folder")


def add_command(group: Typer, name: str, declared: str, body: str) -> None:
    """Register a command. The module of its body is imported only when the command runs.

    Args:
        group: the group that gets the command.
        name: the name that users type.
        declared: `module:class` in this package, a dataclass of options; the help lists its own fields before the
            inherited ones.
        body: `module:function` in this package; the function takes the options.
    """
    options: type[Options] = resolve_name(f"{__package__}.{declared}")

    def run(**given: Any) -> None:
        resolve_name(f"{__package__}.{body}")(options(**given))

    hints = get_type_hints(options, include_extras=True)
    known = inspect.signature(options).parameters
    order = dict.fromkeys(field for each in options.__mro__ for field in getattr(each, "__annotations__", ()))
    run.__signature__ = inspect.Signature([known[field].replace(annotation=hints[field]) for field in order])  # type: ignore[attr-defined]
    run.__annotations__, run.__doc__ = hints, options.__doc__
    group.command(name)(run)
