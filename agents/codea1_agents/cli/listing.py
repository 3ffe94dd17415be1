"""`codea1 problems list` and `codea1 agents`: what there is, by name."""

from __future__ import annotations

import inspect
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import typer

from codea1_agents.cli.options import Json

if TYPE_CHECKING:
    from codea1_env.plugins import Group

problems_app = typer.Typer(no_args_is_help=True, help="Sources of problems.")

_ROLES = ("coder", "tester")


@problems_app.callback()
def _problems() -> None:
    """Sources of problems."""  # a callback keeps `list` a command of its own


@problems_app.command("list")
def list_problems(as_json: Json = False) -> None:
    """List the registered sources of problems; files, folders and module:attribute also are sources.

    \b
    Example:
      codea1 problems list
    """
    _list("problems", as_json)


def agents(as_json: Json = False) -> None:
    """List the registered agents: whom they play, their options, what is missing here; module:attribute also is one.

    \b
    Example:
      codea1 agents
    """
    from codea1_agents.cli.console import Page, new_table  # noqa: PLC0415  heavy
    from codea1_agents.cli.extras import missing_extra  # noqa: PLC0415  heavy
    from codea1_env.plugins import names  # noqa: PLC0415  heavy

    page, rows, data = Page(as_json=as_json), [], []
    for name in names("agents"):
        found = _described("agents", name)
        missing = missing_extra("codea1_env.agents", name)
        note = f" Missing here: pip install '{missing}'" if missing else ""
        rows.append((name, ", ".join(found.roles), found.options, found.what + note))
        data.append(asdict(found) | {"missing": missing})
    page.show(new_table(("name", "plays", "options", "what it is"), rows, whole=(0,)))
    page.finish({"agents": data})


def presets(as_json: Json = False) -> None:
    """List the presets of codea1 train: named settings, which a TOML file may extend.

    \b
    Example:
      codea1 presets
    """
    from codea1_agents.cli.training_runs import run_presets  # noqa: PLC0415  heavy

    run_presets(as_json=as_json)


def _list(group: Group, as_json: bool) -> None:
    from codea1_agents.cli.console import Page, new_table  # noqa: PLC0415  heavy
    from codea1_env.plugins import names  # noqa: PLC0415  heavy

    page = Page(as_json=as_json)
    found = [_described(group, name) for name in names(group)]
    page.show(new_table(("name", "options", "what it is"), [(each.name, each.options, each.what) for each in found]))
    page.finish({group: [{"name": each.name, "options": each.options, "what": each.what} for each in found]})


@dataclass(frozen=True, slots=True)
class _Described:
    """One registered name."""

    name: str
    options: str
    what: str
    """First paragraph of its docstring; or why it cannot be imported."""
    roles: tuple[str, ...] = ()
    """Of an agent: whom it can play."""


def _described(group: Group, name: str) -> _Described:
    from codea1_env.errors import UserError  # noqa: PLC0415  heavy
    from codea1_env.plugins import resolve  # noqa: PLC0415  heavy

    try:
        target = resolve(group, name)
    except UserError as error:
        return _Described(name, "", f"cannot be used: {error}")
    options = inspect.signature(target).parameters.values() if inspect.isclass(target) else ()
    told = [f"{each.name}={each.default}" for each in options if each.kind is each.KEYWORD_ONLY]
    what = " ".join((inspect.getdoc(target) or "").partition("\n\n")[0].split())
    plays = getattr(target, "plays", None)
    return _Described(name, ", ".join(told), what, (plays,) if plays in _ROLES else _ROLES)
