"""Declares the options that several commands share: each letter and name once."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast, get_args, get_type_hints

from typer import Context, Option

from codea1_env.errors import UserError
from codea1_env.records.whole_files import require_file, require_folder
from codea1_env.rules.ruleset import PRESETS, Ruleset

_T = TypeVar("_T")

_RULES = f"Name of the rules: {', '.join(PRESETS)}; or the name of a reward (codea1 list rewards)."


def agent_spec(name: str, about: str, **settings: Any) -> Any:
    """Return the declaration of an option that takes an agent."""
    return Option(name, help=about, **settings)


def how_many(name: str, about: str, **settings: Any) -> Any:
    """Return the declaration of the option of a command that says how many: `-n`."""
    return Option(name, "-n", min=1, help=about, **settings)


def output(about: str, *names: str, is_file: bool = False, **settings: Any) -> Any:
    """Return the declaration of an option that names a file or folder to write: `--out`, or another name.

    A place that cannot be written is refused before any work.
    """
    names = names or ("--out", "-o")
    return Option(*names, help=about, callback=_check_place(require_file if is_file else require_folder), **settings)


def _check_place(require: Callable[[Path], None]) -> Callable[[Context, Path | None], Path | None]:
    def check(context: Context, path: Path | None) -> Path | None:
        if path is not None and not context.resilient_parsing:  # in which a shell completes words
            require(path)
        return path

    return check


def problem_source(about: str = "Problem source: a name or a path.", **settings: Any) -> Any:
    """Return the declaration of the option that names the problems."""
    return Option("--problems", "-p", help=about, **settings)


def rules_name(about: str = _RULES, **settings: Any) -> Any:
    """Return the declaration of the option that names the rules."""
    return Option("--rules", help=about, **settings)


def sandbox_name(about: str = "Sandbox that runs the programs.", **settings: Any) -> Any:
    """Return the declaration of the option that names the sandbox."""
    return Option("--sandbox", help=about, **settings)


def seed_of(what: str, **settings: Any) -> Any:
    """Return the declaration of the option that seeds `what`."""
    return Option("--seed", min=0, help=f"Seed of {what}.", **settings)


def only_first(what: str = "problems", **settings: Any) -> Any:
    """Return the declaration of the option that leaves out all but the first."""
    return Option("--limit", min=1, help=f"Use only this many {what}, from the first.", **settings)


def n_suites(about: str) -> Any:
    """Return the declaration of the option with the number of suites."""
    return Option("--suites", "-m", min=1, help=about)


def n_tests(about: str = "Tests requested per suite.", **settings: Any) -> Any:
    """Return the declaration of the option with the number of tests."""
    return Option("--tests", min=1, max=1000, help=about, **settings)


Alpha = Annotated[
    float | None,
    Option("--alpha", min=0, max=1, help="Weight of validity in the tester's reward.", show_default="the rules'"),
]
Host = Annotated[str, Option("--host", help="Address to listen on.")]
Limit = Annotated[int | None, only_first(show_default="all")]
NoProgress = Annotated[bool, Option("--quiet", "-q", help="Do not show progress.")]
Port = Annotated[int, Option("--port", min=0, max=65_535, help="Port to listen on; 0: any free port.")]
Problems = Annotated[str, problem_source()]
Prompts = Annotated[str, Option("--prompts", help="Wording of the prompts: a name or a file.")]
ReplyTimeout = Annotated[
    float,
    Option("--reply-timeout", min=0, help="Seconds after which a reply is given up and its game is masked; 0: never."),
]
Rules = Annotated[str, rules_name()]
SandboxName = Annotated[str, sandbox_name()]
SummaryOnly = Annotated[bool, Option("--quiet", "-q", help="Print only the summary.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The option of every command."""

    as_json: Annotated[bool, Option("--json", help="Print one JSON object on stdout and the rest on stderr.")] = False

    def __post_init__(self) -> None:
        """Raise UserError if a file to write is one to read."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        outputs = {os.path.realpath(path) for name in ("out", "save") if (path := values.pop(name, None))}
        if not outputs:
            return
        for word in re.split("[,=\n]", "\n".join(map(str, values.values()))):
            if os.path.isfile(word) and os.path.realpath(word) in outputs:
                raise UserError(f"{word}: expected another file to write, got one that this command reads")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions(Options):
    """The options of the commands that run agents on problems."""

    problems: Problems
    seed: Annotated[int, seed_of("the agents and the intervals")] = 0
    sandbox: SandboxName = "local"
    limit: Limit = None
    quiet: NoProgress = False


def retype(command: str, options: Options, **changes: object) -> str:
    """Return the command line that gives a command these options, with some of them changed; defaults are left out."""
    words, hints = command.split(), get_type_hints(type(options), include_extras=True)
    for each in fields(options):
        value = changes.get(each.name, getattr(options, each.name))
        if value is None or value is False or value == each.default:
            continue
        declared = get_args(hints[each.name])[-1]
        names = [name for name in declared.param_decls or () if name.startswith("--")]
        flag = names[0] if names else f"--{each.name.replace('_', '-')}"
        words += [flag] if value is True else [flag, str(value)]
    return shlex.join(words)


def require_out_or_resume(out: Path | None, resume: Path | None) -> None:
    """Raise UserError if both `--out` and `--resume` are given."""
    if out is not None and resume is not None:
        raise UserError("--out cannot be combined with --resume: a resumed run stays in its folder")


def adjusted_rules(rules: Ruleset, *, alpha: float | None, tests_per_suite: int | None) -> Ruleset:
    """Return the rules with another alpha or another number of tests; None keeps the value.

    Raises:
        UserError: a number is out of range.
    """
    if alpha is not None:
        rules = replace(rules, reward=replace(rules.reward, alpha=alpha))
    if tests_per_suite is not None:
        rules = replace(rules, tests_per_suite=tests_per_suite)
    return rules


def from_options(kind: type[_T], options: object, **others: Any) -> _T:
    """Return a `kind`, a dataclass: each field is in `others` or is the attribute of the same name of `options`."""
    names = {field.name for field in fields(cast(Any, kind)) if hasattr(options, field.name)} - others.keys()
    return kind(**{name: getattr(options, name) for name in names}, **others)
