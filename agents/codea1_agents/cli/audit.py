"""The options of `codea1 audit`; `auditing` runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from typer import Option

from codea1_agents.cli.options import NoProgress, Options


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions(Options):
    """Attack a sandbox with hostile programs, test suites and candidates.

    Exits with 1 if a program forged a verdict, escaped from the sandbox, or left something behind.

    \b
    Example:
      codea1 audit
      codea1 audit --only always_equal
    """

    sandbox: Annotated[str, Option(help="Sandbox to attack.")] = "local"
    only: Annotated[str | None, Option(metavar="NAME", help="Run only this attack.")] = None
    comparison: Annotated[
        bool, Option(help="Also run the harmless attacks against a plain exit-code grader, for comparison.")
    ] = True
    markdown: Annotated[bool, Option("--markdown", help="Print the table of docs/sandbox-attacks.md.")] = False
    quiet: NoProgress = False
