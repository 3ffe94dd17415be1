"""`codea1 list`: what is installed under which names."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, get_args

from typer import Argument

from codea1_agents.checks.machine import missing_extra
from codea1_agents.cli.console import Page, new_table, tally
from codea1_agents.cli.options import Options
from codea1_agents.prompts.templates import EXTENSIONS, WORDINGS, about
from codea1_agents.train.settings.loading import load_training, preset_names
from codea1_env.agent import Role
from codea1_env.agent.options import option_parameters
from codea1_env.errors import UserError, install_line
from codea1_env.plugins import Group, names, resolve
from codea1_env.problems import load_problems
from codea1_env.rules.ruleset import PRESETS


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsOptions(Options):
    """List the registered agents with roles, options and missing packages, or show one agent and its options.

    \b
    Example:
      codea1 list agents
      codea1 list agents mutant
    """

    name: Annotated[str, Argument(help="An agent to show: a name or module:attribute.", show_default=False)] = ""


class ProblemsOptions(Options):
    """List the registered problem sources; files, folders and module:attribute are sources too.

    \b
    Example:
      codea1 list problems
    """


class RewardsOptions(Options):
    """List the rewards that installed packages have registered; --rules takes their names, too.

    \b
    Example:
      codea1 list rewards
    """


class SandboxesOptions(Options):
    """List the registered sandboxes; codea1 sandbox check NAME tests one.

    \b
    Example:
      codea1 list sandboxes
    """


class PresetsOptions(Options):
    """List the training settings that have a name, the presets of codea1 train; a TOML file can extend one.

    \b
    Example:
      codea1 list presets
    """


class RulesOptions(Options):
    """List the rules by name, for --rules and preset(NAME); codea1 list rewards has those of other packages.

    \b
    Example:
      codea1 list rules
    """


class PromptsOptions(Options):
    """List the wordings of prompts; a TOML file is a wording too.

    \b
    Example:
      codea1 list prompts
    """


_ROLES = get_args(Role)


def list_agents(options: AgentsOptions) -> None:
    """List the registered agents and their missing packages, or show one agent.

    Raises:
        UserError: the agent does not exist.
    """
    page = Page(as_json=options.as_json)
    if options.name:
        _show_agent(page, options.name.partition(",")[0])
        return
    descriptions = [_describe("agents", name) for name in names("agents")]
    rows = []
    for each in descriptions:
        note = f" Missing here: {install_line(each.missing)}" if each.missing else ""
        rows.append((each.name, ", ".join(each.roles), ", ".join(map(str, each.options)), each.what + note))
    page.show(new_table(("name", "plays", "options", "what it is"), rows, whole=(0,)))
    page.say("codea1 list agents NAME shows the options of one agent.")
    page.finish(agents=[asdict(description) for description in descriptions])


def _show_agent(page: Page, name: str) -> None:
    target = resolve("agents", name)
    description = _describe("agents", name)
    page.say(f"{name}, plays {' and '.join(description.roles)}")
    for line in (inspect.getdoc(target) or "").splitlines():
        page.say(line)
    if description.options:
        rows = [option.cells() for option in description.options]
        page.show(new_table(("option", "type", "default"), rows, whole=(0,)))
    if description.missing:
        page.say(f"Missing here: {install_line(description.missing)}")
    page.finish(agents=[asdict(description)])


def list_problems(options: ProblemsOptions) -> None:
    """List the registered problem sources."""
    page, rows, data = Page(as_json=options.as_json), [], []
    for name in names("problems"):
        description = _describe("problems", name)
        counts = _counts(name)
        takes = "".join(f":{option.name.upper()}" for option in description.options)
        rows.append((name + takes, tally(counts.items()) or "-", description.what))
        data.append(asdict(description) | {"n_by_kind": counts})
    page.show(new_table(("name", "problems by kind", "what it is"), rows, whole=(0, 1)))
    page.finish(sources=data)


def _counts(name: str) -> dict[str, int]:
    """Return the number of problems of each kind; empty if the source cannot be loaded."""
    try:
        kinds = [problem.kind.value for problem in load_problems(name)]
    except UserError:
        return {}
    return {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}


def list_rewards(options: RewardsOptions) -> None:
    """List the rewards of installed packages."""
    _list_registered("rewards", Page(as_json=options.as_json))


def list_sandboxes(options: SandboxesOptions) -> None:
    """List the registered sandboxes."""
    _list_registered("sandboxes", Page(as_json=options.as_json))


def _list_registered(group: Literal["rewards", "sandboxes"], page: Page) -> None:
    rows = _show_table(page, ("name", "what it is"), {name: _describe(group, name).what for name in names(group)})
    if not rows:
        page.say("No installed package has registered one.")
    page.finish(**{group: rows})


def _show_table(page: Page, headings: tuple[str, str], what: Mapping[str, str]) -> list[dict[str, str]]:
    """Print a table by name; return it as plain data."""
    page.show(new_table(headings, list(what.items()), whole=(0,)))
    return [{"name": name, "what": each} for name, each in what.items()]


def list_presets(options: PresetsOptions) -> None:
    """List the presets of `codea1 train`."""
    page = Page(as_json=options.as_json)
    what = {name: load_training(name).about for name in preset_names()}
    page.finish(presets=_show_table(page, ("preset", "what it is"), what))


def list_rules(options: RulesOptions) -> None:
    """List the rules of the game by name."""
    page, rows = Page(as_json=options.as_json), []
    for name, rules in PRESETS.items():
        reward = rules.reward
        rows.append((name, reward.scheme, f"{reward.alpha:g}", rules.validation.value, str(rules.tests_per_suite)))
    page.show(new_table(("rules", "rewards", "alpha", "validation", "tests per suite"), rows, whole=(0,)))
    page.say("validation: fill corrects a test's wrong prediction, drop_wrong drops the test.")
    columns = ("name", "scheme", "alpha", "validation", "tests_per_suite")
    page.finish(rules=[dict(zip(columns, row, strict=True)) for row in rows])


def list_prompts(options: PromptsOptions) -> None:
    """List the wordings of prompts, and what may follow their names."""
    page = Page(as_json=options.as_json)
    page.finish(
        prompts=_show_table(page, ("wording", "what it is"), {name: about(name) for name in WORDINGS}),
        extensions=_show_table(page, ("after a wording", "what it adds"), EXTENSIONS),
    )


@dataclass(frozen=True, slots=True)
class _Option:
    """One option of a registered name."""

    name: str
    type: str
    default: str | None
    """As Python code; None: the option is required."""

    def __str__(self) -> str:
        return self.name if self.default is None else f"{self.name}={self.default.strip(chr(39))}"

    def cells(self) -> tuple[str, str, str]:
        """Return a row of a table."""
        return self.name, self.type, "required" if self.default is None else self.default


@dataclass(frozen=True, slots=True)
class _Description:
    """One registered name."""

    name: str
    what: str
    """First paragraph of its docstring, or why it cannot be imported."""
    options: tuple[_Option, ...] = ()
    roles: tuple[str, ...] = ()
    """The roles that an agent can play."""
    missing: str = ""
    """The extra that a user must install first."""


def _describe(group: Group, name: str) -> _Description:
    missing = missing_extra(f"codea1_env.{group}", name) or ""
    try:
        target = resolve(group, name)
    except UserError as error:
        return _Description(name, f"cannot be used: {error}", missing=missing)
    what = " ".join((inspect.getdoc(target) or "").partition("\n\n")[0].split())
    plays = getattr(target, "plays", None)
    roles = (plays,) if plays in _ROLES else _ROLES
    return _Description(name, what, _options(group, target), roles if group == "agents" else (), missing)


def _options(group: Group, target: Any) -> tuple[_Option, ...]:
    """Return the parameters that a specification can set: those of an agent's class, or of a source's function."""
    if not (inspect.isclass(target) if group == "agents" else inspect.isfunction(inspect.unwrap(target))):
        return ()
    return tuple(
        _Option(each.name, _type_of(each), None if each.default is each.empty else repr(each.default))
        for each in option_parameters(target).values()
    )


def _type_of(parameter: inspect.Parameter) -> str:
    kind = "any" if parameter.annotation is parameter.empty else parameter.annotation
    return kind if isinstance(kind, str) else inspect.formatannotation(kind)
