"""`codea1 sandbox check`: every kind of outcome, twice."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Annotated

import typer
from typer import Argument

from codea1_agents.checks import sandbox_check
from codea1_agents.checks.sandbox_check import promise_of
from codea1_agents.cli.boundary import NOT_OK
from codea1_agents.cli.console import Page, new_table
from codea1_agents.cli.options import Options
from codea1_agents.cli.progress import Progress
from codea1_env.sandbox import load_sandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions(Options):
    """Produce every kind of outcome with small programs, twice, and print what the sandbox guarantees here.

    \b
    Example:
      codea1 sandbox check
      CODEA1_REQUIRE_TIER=namespaces codea1 sandbox check
    """

    name: Annotated[str, Argument(help="Sandbox to check.")] = "local"


def run_check_sandbox(options: CheckOptions) -> None:
    """Produce every kind of outcome twice.

    Raises:
        UserError: the sandbox or the tier does not exist.
        SandboxError: the sandbox cannot be used at all, or not in the required tier.
        typer.Exit: an outcome is wrong (1).
    """
    page = Page(as_json=options.as_json)
    with closing(load_sandbox(options.name)) as backend, Progress("checking", None, page):
        check = sandbox_check.check_sandbox(backend)
        promise = promise_of(backend)
    rows = [(f.expected.value, *(kind.value for kind in f.found), "ok" if f.ok else "NOT OK") for f in check]
    page.show(new_table(("expected outcome", "first run", "second run", ""), rows))
    page.say(promise.sentence())
    for refusal in promise.refusals:
        page.say(f"not {refusal}")
    page.finish(sandbox=asdict(promise), outcomes=[asdict(outcome) | {"ok": outcome.ok} for outcome in check])
    if not all(outcome.ok for outcome in check):
        raise typer.Exit(NOT_OK)
