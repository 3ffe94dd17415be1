"""The options of `codea1 sandbox`; `auditing` and `sandbox_commands` run its commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from typer import Argument, Option

from codea1_agents.cli import completing
from codea1_agents.cli.options import NoProgress, Options, sandbox_name


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions(Options):
    """Attack a sandbox with hostile programs, test suites and candidates.

    Exits with 1 if a program forged a verdict, escaped from the sandbox, or left something behind.

    \b
    Example:
      codea1 sandbox audit
      codea1 sandbox audit --only always_equal
    """

    sandbox: Annotated[str, sandbox_name("Sandbox to attack.")] = "local"
    only: Annotated[str | None, Option(metavar="NAME", help="Run only this attack.")] = None
    comparison: Annotated[
        bool, Option(help="Also run the harmless attacks against a plain exit-code grader, for comparison.")
    ] = True
    markdown: Annotated[bool, Option("--markdown", help="Print the table of docs/sandbox-attacks.md.")] = False
    quiet: NoProgress = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions(Options):
    """Produce every kind of outcome with small programs, twice, and print what the sandbox guarantees here.

    \b
    Example:
      codea1 sandbox check
      codea1 sandbox check --require namespaces
    """

    name: Annotated[str, Argument(help="Sandbox to check.", autocompletion=completing.sandboxes)] = "local"
    require: Annotated[
        str, Option(metavar="TIER", help="Weakest tier to accept: namespaces, bwrap, landlock, seccomp, rlimits.")
    ] = ""


class CleanOptions(Options):
    """Remove what killed processes left of the docker sandbox: containers, images and temporary folders.

    Removes only what this program created for processes that no longer run. The sandbox creates them again when it
    needs them.

    \b
    Example:
      codea1 sandbox clean
    """
