"""The names of the first level of `codea1`, and how a command becomes one of typer's.

Another package adds commands, as `codea1_lab` does, with an entry point in the group `codea1_agents.commands` that
names a mapping of the same form as `ENTRIES` in `codea1_agents.cli.app`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, TypeAlias, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group
from typer.models import OptionInfo, ParameterInfo

EXTENSIONS = "codea1_agents.commands"
"""The entry-point group of packages that add commands."""

PLAY, TRAIN, MEASURE, LOOK, CHECK = "Play", "Train", "Measure", "Look", "Check and list"
"""The headings in the help."""


_KINDS = {str: "TEXT", Path: "PATH", int: "INTEGER", float: "FLOAT"}
"""Names of the types of options in the help."""


_LARGEST: dict[type, float] = {int: 1_000_000, float: 1e9}
"""Of a number whose declaration has no bound: a larger one is a slip of the keyboard, and would only fill memory."""
_LARGEST_SEED = (1 << 63) - 1


class PlainFlags:
    """Commands whose flags and arguments have no type in the help: flags take no value, arguments have names."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return all options and arguments, that for help among them."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # of the class beside it
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
            elif param.param_type_name == "argument":
                param.display_type_rich = lambda ctx: None
        return params


class _PlainCommand(PlainFlags, TyperCommand):
    pass


class _PlainGroup(PlainFlags, TyperGroup):
    pass


Commands: TypeAlias = "Mapping[str, str | Group]"
"""By name, a command as `module:function`, or a group of commands."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One name of the first level. Its modules are imported only when the name is chosen."""

    panel: str
    """Heading in the help."""
    about: str
    """One line in the help."""
    commands: str | Commands
    """The command as `module:function`, or those of a group by name.

    The function takes one argument, a dataclass of options: their declarations are the fields' annotations, and the
    help of the command is the docstring of the dataclass.
    """

    def load(self, name: str) -> Any:
        """Return the command or group; imports its modules."""
        if isinstance(self.commands, str):
            app = typer.Typer(add_completion=False)
            _add(app, name, self.commands)
            return get_command(app)
        group = get_group(_app(self.about, self.commands))
        group.name = name
        return group


@dataclass(frozen=True, slots=True)
class Group:
    """Commands below a name of the first level, such as those of `codea1 book history`."""

    about: str
    commands: Commands


def with_extensions(own: Mapping[str, Entry]) -> dict[str, Entry]:
    """Return the entries with those of other packages, which can add to a group but replace nothing."""
    entries = dict(own)
    for point in sorted(entry_points(group=EXTENSIONS), key=lambda point: point.name):
        try:
            added: Mapping[str, Entry] = point.load()
        except Exception as error:  # noqa: BLE001  a broken package must not take `codea1` with it
            print(f"warning: the commands of {point.value} are left out: {error}", file=sys.stderr)
            continue
        for name, entry in added.items():
            known = entries.setdefault(name, entry)
            if not isinstance(known.commands, str) and not isinstance(entry.commands, str):
                new = {part: command for part, command in entry.commands.items() if part not in known.commands}
                entries[name] = replace(known, commands={**known.commands, **new})
    return entries


def _app(about: str, commands: Commands) -> typer.Typer:
    app = typer.Typer(cls=_PlainGroup, add_completion=False, no_args_is_help=True, help=about)
    for name, command in commands.items():
        if isinstance(command, Group):
            app.add_typer(_app(command.about, command.commands), name=name)
        else:
            _add(app, name, command)
    return app


def _add(app: typer.Typer, name: str, command: str) -> None:
    """Register a function that takes a dataclass of options; in the help, its own fields precede inherited ones."""
    body: Callable[[Any], None] = resolve_name(command)
    options: type[Any] = get_type_hints(body)["options"]

    def run(**given: Any) -> None:
        body(options(**given))

    known = inspect.signature(options).parameters
    hints = {
        name: _as_shown(name, annotation, known[name].default) if name in known else annotation
        for name, annotation in get_type_hints(options, include_extras=True).items()
    }
    order = dict.fromkeys(field for kind in options.__mro__ for field in getattr(kind, "__annotations__", ()))
    run.__signature__ = inspect.Signature([known[field].replace(annotation=hints[field]) for field in order])  # type: ignore[attr-defined]
    run.__annotations__, run.__doc__ = hints, options.__doc__
    app.command(name, cls=_PlainCommand)(run)


def _as_shown(name: str, annotation: Any, default: object) -> Any:
    """Return a declaration for the help: with the type's name or the argument's, and the default in its text."""
    if get_origin(annotation) is not Annotated:
        return annotation
    kind, *about = get_args(annotation)
    declared = next((each for each in about if isinstance(each, ParameterInfo)), None)
    if declared is None:
        return annotation
    option = copy(declared)  # declarations are shared by commands
    types = [kind, *get_args(kind), *(part for argument in get_args(kind) for part in get_args(argument))]
    called = next((word for each, word in _KINDS.items() if each in types), None)
    option.metavar = option.metavar or (called if isinstance(option, OptionInfo) else name.upper())
    if (largest := next((most for each, most in _LARGEST.items() if each in types), None)) is not None:
        option.min = 0 if option.min is None else option.min
        option.max = option.max or (_LARGEST_SEED if name == "seed" else largest)
    told, option.show_default = option.show_default, False
    if told is True and default is not False and default not in (None, "", inspect.Parameter.empty):
        told = "yes" if default is True else f"{default:g}" if isinstance(default, float) else str(default)
    if isinstance(told, str):
        option.help = f"{option.help or ''} [dim]\\[default: {told}][/dim]".lstrip()
    return Annotated[kind, option]
