"""`codea1 problems list` and `codea1 agents`: what there is, by name."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from codea1_env.plugins import Group

__all__ = ["agents", "problems_app"]

problems_app = typer.Typer(no_args_is_help=True, help="Sources of problems.")

_Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, all else on stderr.")]


@problems_app.callback()
def _problems() -> None:
    """Sources of problems."""  # a callback keeps `list` a command of its own


@problems_app.command("list")
def list_problems(as_json: _Json = False) -> None:
    """List the registered sources of problems; files, folders and module:attribute also are sources.

    \b
    Example:
      codea1 problems list
    """
    _list("problems", as_json)


def agents(as_json: _Json = False) -> None:
    """List the registered agents with their options; module:attribute also names one.

    \b
    Example:
      codea1 agents
    """
    _list("agents", as_json)


def _list(group: Group, as_json: bool) -> None:
    from codea1_agents.cli.console import Page, new_table  # noqa: PLC0415  heavy
    from codea1_env.plugins import names  # noqa: PLC0415  heavy

    page = Page(as_json=as_json)
    rows = [(name, *_described(group, name)) for name in names(group)]
    page.show(new_table(("name", "options", "what it is"), rows))
    page.finish({group: [{"name": name, "options": options, "what": what} for name, options, what in rows]})


def _described(group: Group, name: str) -> tuple[str, str]:
    """Return its options and the first sentence of its docstring; or why it cannot be imported."""
    from codea1_env.errors import UserError  # noqa: PLC0415  heavy
    from codea1_env.plugins import resolve  # noqa: PLC0415  heavy

    try:
        target = resolve(group, name)
    except UserError as error:
        return "", f"cannot be used: {error}"
    options = inspect.signature(target).parameters.values() if inspect.isclass(target) else ()
    told = [f"{each.name}={each.default}" for each in options if each.kind is each.KEYWORD_ONLY]
    return ", ".join(told), (inspect.getdoc(target) or "").partition("\n")[0]
