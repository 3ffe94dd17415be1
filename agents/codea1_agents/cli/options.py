"""A command's options are the fields of one dataclass, its help that class's docstring; what many commands share."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Annotated, Any, get_type_hints

from typer import Option, Typer

Alpha = Annotated[
    float | None, Option(min=0, max=1, help="Weight of validity in the tester's reward.", show_default="the preset's")
]
Limit = Annotated[int | None, Option(min=1, help="Only so many problems, from the front.", show_default="all")]
NoProgress = Annotated[bool, Option("--quiet", "-q", help="No progress.")]
Problems = Annotated[str, Option(help="Source by name or path.")]
Rules = Annotated[str, Option("--rules", "--preset", help="Preset of the rules.")]
Sandbox = Annotated[str, Option(help="Where programs run.")]
SummaryOnly = Annotated[bool, Option("--quiet", "-q", help="Only the summary.")]
TestsPerSuite = Annotated[int, Option(min=1, max=1000, help="Tests asked for per suite.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What every command has."""

    as_json: Annotated[bool, Option("--json", help="One JSON object on stdout, all else on stderr.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions(Options):
    """What the commands have in which agents answer for problems."""

    problems: Problems
    seed: Annotated[int, Option(min=0, help="Of the agents and the intervals.")] = 0
    sandbox: Sandbox = "local"
    limit: Limit = None


def add_command(group: Typer, name: str, options: type[Options], body: str) -> None:
    """Register a command, whose module is imported only when it runs.

    Args:
        group: where to.
        name: what is typed.
        options: a dataclass; help shows its own fields before the inherited ones.
        body: `module:function` of this package; takes the options.
    """

    def run(**given: Any) -> None:
        resolve_name(f"{__package__}.{body}")(options(**given))

    hints = get_type_hints(options, include_extras=True)
    known = inspect.signature(options).parameters
    order = dict.fromkeys(field for each in options.__mro__ for field in getattr(each, "__annotations__", ()))
    run.__signature__ = inspect.Signature([known[field].replace(annotation=hints[field]) for field in order])  # type: ignore[attr-defined]
    run.__annotations__, run.__doc__ = hints, options.__doc__
    group.command(name)(run)
