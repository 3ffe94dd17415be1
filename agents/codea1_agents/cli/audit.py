"""`codea1 audit`: the options. What it does: `auditing`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from typer import Option

from codea1_agents.cli.options import NoProgress, Options


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions(Options):
    """Attack a sandbox with hostile programs, test suites and candidates.

    Exits with 1 if a verdict was forged, or if something escaped or was left behind.

    \b
    Example:
      codea1 audit
      codea1 audit --only always_equal
    """

    sandbox: Annotated[str, Option(help="Which sandbox.")] = "local"
    only: Annotated[str | None, Option(metavar="NAME", help="One attack only.")] = None
    comparison: Annotated[
        bool, Option(help="Show what the harmless ones of the attacks gain from a plain exit-code grader.")
    ] = True
    markdown: Annotated[bool, Option("--markdown", help="The table of docs/sandbox-attacks.md.")] = False
    quiet: NoProgress = False
