"""`codea1 audit`: the options. What it does: `auditing`."""

from __future__ import annotations

from typing import Annotated

import typer

from codea1_agents.cli.options import Json


def audit(
    sandbox: Annotated[str, typer.Option(help="Which sandbox.")] = "local",
    only: Annotated[str | None, typer.Option(metavar="NAME", help="One attack only.")] = None,
    comparison: Annotated[
        bool, typer.Option(help="Show what the harmless ones of the attacks gain from a plain exit-code grader.")
    ] = True,
    markdown: Annotated[bool, typer.Option("--markdown", help="The table of docs/sandbox-attacks.md.")] = False,
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Attack a sandbox with hostile programs, test suites and candidates.

    Exits with 1 if a verdict was forged, or if something escaped or was left behind.

    \b
    Example:
      codea1 audit
      codea1 audit --only always_equal
    """
    if markdown and as_json:
        raise typer.BadParameter("choose one of --json and --markdown")
    from codea1_agents.cli.auditing import run_audit_command  # noqa: PLC0415  heavy

    run_audit_command(sandbox, only=only, with_comparison=comparison, markdown=markdown, as_json=as_json, quiet=quiet)
