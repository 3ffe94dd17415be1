"""Registers commands, and declares the options that many commands share.

The options of a command are the fields of one dataclass; the docstring of the class is the command's help.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, get_type_hints

from typer import Option, Typer

DEFAULT_SOURCE = "humaneval"
"""Equals `codea1_env.problems.DEFAULT_SOURCE`, whose import would slow `--help` down; a test compares the two."""

REPLY_TIMEOUT_S = 600.0
"""Equals `codea1_agents.play.call_thread.REPLY_TIMEOUT_S`; a test compares the two, too."""

Alpha = Annotated[
    float | None, Option(min=0, max=1, help="Weight of validity in the tester's reward.", show_default="the preset's")
]
Limit = Annotated[int | None, Option(min=1, help="Use only the first so many problems.", show_default="all")]
NoProgress = Annotated[bool, Option("--quiet", "-q", help="Do not show progress.")]
Problems = Annotated[str, Option("--problems", "-p", help="Problem source: a name or a path.")]
ReplyTimeout = Annotated[
    float, Option(min=0, help="Seconds after which a reply is given up and its game is masked; 0: never.")
]
Rules = Annotated[str, Option("--rules", "--preset", help="Name of a rules preset.")]
Sandbox = Annotated[str, Option(help="Sandbox that runs the programs.")]
SummaryOnly = Annotated[bool, Option("--quiet", "-q", help="Print only the summary.")]
TestsPerSuite = Annotated[int, Option(min=1, max=1000, help="Tests requested per suite.")]


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
    seed: Annotated[int, Option(min=0, help="Seed of the agents and the intervals.")] = 0
    sandbox: Sandbox = "local"
    limit: Limit = None


def require_out_or_resume(out: Path | None, resume: Path | None) -> None:
    """Raise UserError if both `--out` and `--resume` are given."""
    if out is not None and resume is not None:
        from codea1_env.errors import UserError  # noqa: PLC0415  slow to import for `--help`

        raise UserError("--out and --resume exclude each other: a resumed run stays in its folder")


def add_command(group: Typer, name: str, options: type[Options], body: str) -> None:
    """Register a command. The module of its body is imported only when the command runs.

    Args:
        group: the group that gets the command.
        name: the name that users type.
        options: a dataclass; the help lists its own fields before the inherited ones.
        body: `module:function` in this package; the function takes the options.
    """

    def run(**given: Any) -> None:
        resolve_name(f"{__package__}.{body}")(options(**given))

    hints = get_type_hints(options, include_extras=True)
    known = inspect.signature(options).parameters
    order = dict.fromkeys(field for each in options.__mro__ for field in getattr(each, "__annotations__", ()))
    run.__signature__ = inspect.Signature([known[field].replace(annotation=hints[field]) for field in order])  # type: ignore[attr-defined]
    run.__annotations__, run.__doc__ = hints, options.__doc__
    group.command(name)(run)
