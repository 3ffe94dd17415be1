"""Runs `codea1 problems list`, `codea1 agents` and `codea1 doctor`."""

from __future__ import annotations

import inspect
from dataclasses import asdict, dataclass
from typing import get_args

from codea1_agents.checks.machine import examine, missing_extra
from codea1_agents.cli.console import Page, new_table
from codea1_agents.cli.inventory import AgentsOptions, DoctorOptions, ProblemsOptions
from codea1_env.agent import Role
from codea1_env.errors import UserError, install_line
from codea1_env.plugins import Group, names, resolve

_ROLES = get_args(Role)


def list_problems(options: ProblemsOptions) -> None:
    """List the registered problem sources."""
    page = Page(as_json=options.as_json)
    found = [_described("problems", name) for name in names("problems")]
    page.show(new_table(("name", "options", "what it is"), [(each.name, each.options, each.what) for each in found]))
    page.finish(problems=[{"name": each.name, "options": each.options, "what": each.what} for each in found])


def list_agents(options: AgentsOptions) -> None:
    """List the registered agents and their missing packages."""
    page, rows, data = Page(as_json=options.as_json), [], []
    for name in names("agents"):
        found = _described("agents", name)
        missing = missing_extra("codea1_env.agents", name)
        note = f" Missing here: {install_line(missing)}" if missing else ""
        rows.append((name, ", ".join(found.roles), found.options, found.what + note))
        data.append(asdict(found) | {"missing": missing})
    page.show(new_table(("name", "plays", "options", "what it is"), rows, whole=(0,)))
    page.finish(agents=data)


def show_machine(options: DoctorOptions) -> None:
    """Show what this machine offers, and the commands that install the rest."""
    page, findings = Page(as_json=options.as_json), examine()
    rows = [(each.subject, "ok" if each.ok else "missing", each.detail, each.remedy) for each in findings]
    page.show(new_table(("", "", "found", "to get it"), rows, whole=(0, 1)))
    page.finish(findings=[asdict(each) for each in findings])


@dataclass(frozen=True, slots=True)
class _Described:
    """One registered name."""

    name: str
    options: str
    what: str
    """First paragraph of its docstring, or why it cannot be imported."""
    roles: tuple[str, ...] = ()
    """The roles that an agent can play."""


def _described(group: Group, name: str) -> _Described:
    try:
        target = resolve(group, name)
    except UserError as error:
        return _Described(name, "", f"cannot be used: {error}")
    options = inspect.signature(target).parameters.values() if inspect.isclass(target) else ()
    keywords = [f"{each.name}={each.default}" for each in options if each.kind is each.KEYWORD_ONLY]
    what = " ".join((inspect.getdoc(target) or "").partition("\n\n")[0].split())
    plays = getattr(target, "plays", None)
    return _Described(name, ", ".join(keywords), what, (plays,) if plays in _ROLES else _ROLES)
