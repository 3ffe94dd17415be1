"""`codea1 check problems`, `agent` and `machine`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Annotated, Literal, cast, get_args

import typer
from typer import Argument, Option

from codea1_agents.checks.machine import examine
from codea1_agents.cli.boundary import NOT_OK, show_traceback, wants_traceback
from codea1_agents.cli.console import Page, new_table, problems_document, tally
from codea1_agents.cli.options import Limit, NoProgress, Options, ReplyTimeout, SandboxName
from codea1_agents.cli.progress import Progress
from codea1_agents.scripted.typed_inputs import calls_near_tests
from codea1_env.agent import Role
from codea1_env.agent.threads import REPLY_TIMEOUT_S
from codea1_env.errors import AgentUnavailable, UnknownName, UserError
from codea1_env.judging.problem_check import CheckStatus, ProblemCheck, check_problems
from codea1_env.plugins import resolve
from codea1_env.problems import SkippedRow, load_problems
from codea1_env.sandbox import load_sandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckProblemsOptions(Options):
    """Run every solution against its own golden tests and examples, several times.

    Reports wrong, flaky, slow, untested and unparsable rows, and exits with 1 if there are any.

    \b
    Example:
      codea1 check problems humaneval
    """

    source: Annotated[str, Argument(help="Problem source: a name or a path.")]
    limit: Limit = None
    slow: Annotated[float, Option(min=0, help="Processor seconds per run above which a row is slow.")] = 5.0
    sandbox: SandboxName = "local"
    quiet: NoProgress = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckAgentOptions(Options):
    """Test an agent: seeds, batches, unusual observations, errors, time, and what a game reads in its replies.

    Exits with 1 if a test fails, with 3 if the agent was unavailable.

    \b
    Example:
      codea1 check agent mutant,strength=0.3
      codea1 check agent my_module:my_function --role tester
    """

    spec: Annotated[str, Argument(metavar="AGENT", help="An agent's name with its options, or module:attribute.")]
    role: Annotated[
        str, Option(help="coder, tester or both.", show_default="as declared, else both; needed for your own code")
    ] = ""
    slow: Annotated[float, Option(min=0, help="A reply that takes more seconds than this fails the check.")] = 60.0
    reply_timeout: ReplyTimeout = REPLY_TIMEOUT_S
    sandbox: SandboxName = "local"


class CheckMachineOptions(Options):
    """Show what this machine offers, what is missing, and the command that installs it.

    \b
    Example:
      codea1 check machine
    """


def run_check_problems(options: CheckProblemsOptions) -> None:
    """Check every solution of a source, and print the rows that are unfit to play.

    Raises:
        UserError: the source or the sandbox does not exist.
        SandboxError: the sandbox cannot be used at all.
        typer.Exit: a row is not ok (1).
    """
    page = Page(as_json=options.as_json, quiet=options.quiet)
    with Progress("loading problems", None, page):
        problems = load_problems(options.source, limit=options.limit)
    with closing(load_sandbox(options.sandbox)) as backend, Progress("checking", len(problems), page) as progress:
        slow_s, inputs = options.slow, calls_near_tests
        checks = check_problems(problems, backend, slow_s=slow_s, inputs=inputs, progress=progress.reach)
    bad = [check for check in checks if check.status is not CheckStatus.OK]
    rows = [(row.place, "skipped", row.reason) for row in problems.skipped]
    rows += [(check.problem_id, check.status.value, check.detail) for check in bad]
    if rows:
        page.show(new_table(("problem", "status", "because"), rows, whole=(0, 1)))
    page.say(f"{problems.name}: {_count_by_status(checks, problems.skipped)}")
    for text, n_rows in problems.notes.items():
        page.say(f"{text} ({n_rows} {'row' if n_rows == 1 else 'rows'})")
    page.finish(
        problems=problems_document(options.source, problems),
        counts=dict(Counter(check.status.value for check in checks)),
        notes=dict(problems.notes),
        skipped=[asdict(row) for row in problems.skipped],
        skipped_by_cause=_causes(problems.skipped),
        not_ok=[asdict(check) for check in bad],
    )
    if rows:
        raise typer.Exit(NOT_OK)


def run_check_agent(options: CheckAgentOptions) -> None:
    """Test an agent.

    Raises:
        UserError: the agent or the role does not exist, or the agent cannot be made or is interactive.
        AgentUnavailable: the agent was unavailable in every test.
        typer.Exit: a test failed (1).
    """
    from codea1_agents.checks.conformance import Conformance, check_agent  # noqa: PLC0415  only here

    spec, roles = options.spec, (*get_args(Role), "both")
    if options.role not in ("", *roles):
        raise UnknownName.of("role", options.role, roles)
    name = spec.partition(",")[0]
    target = resolve("agents", name)
    if getattr(target, "interactive", False) is True:
        raise UserError(f"agent {spec!r} cannot be checked: it is interactive")
    plays = getattr(target, "plays", None)
    if not options.role and ":" in name and plays not in roles:  # a registered one plays both
        sentence = (
            "does not say what it plays" if plays is None else f"says plays = {plays!r:.80}, expected coder or tester"
        )
        raise UserError(f"{name} {sentence}: add --role coder, --role tester or --role both")
    page = Page(as_json=options.as_json)
    role = cast(Literal["coder", "tester", "both"], options.role) if options.role else None
    with page.apart(), closing(load_sandbox(options.sandbox)) as backend:
        limit_s = options.reply_timeout or None
        with Progress("testing", None, page):
            report = check_agent(spec, role=role, sandbox=backend, slow_s=options.slow, reply_timeout_s=limit_s)
        for played, of_role in groupby(report.findings, lambda each: each.role):
            rows = [(finding.name, finding.result, finding.detail) for finding in of_role]
            page.show(new_table((f"{report.agent} as {played}", "result", "because"), rows, whole=(1,)))
        if wants_traceback():
            show_traceback("\n".join(filter(None, (finding.traceback for finding in report.findings))))
        results = tally(Counter(finding.result.value for finding in report.findings).items())
        page.say(f"{report.agent}: {results}; the slowest reply took {report.slowest_s:.2f} s")
        tests = [asdict(finding) for finding in report.findings]
        page.finish(agent=report.agent, ok=report.ok, slowest_s=report.slowest_s, tests=tests)
    if not report.ok:
        raise typer.Exit(NOT_OK)
    answers = [finding for finding in report.findings if finding.name.endswith("with text")]
    if all(answer.result is Conformance.SKIPPED for answer in answers):
        raise AgentUnavailable(f"{report.agent}: nothing was tested; {answers[0].detail}")


def run_check_machine(options: CheckMachineOptions) -> None:
    """Show what this machine offers, and the commands that install the rest."""
    page, findings = Page(as_json=options.as_json), examine()
    rows = [(each.subject, "ok" if each.ok else "missing", each.detail, each.remedy) for each in findings]
    page.show(new_table(("", "", "found", "to get it"), rows, whole=(0, 1)))
    page.finish(findings=[asdict(finding) for finding in findings])


def _count_by_status(checks: Sequence[ProblemCheck], skipped: Sequence[SkippedRow]) -> str:
    counts = Counter(check.status for check in checks)
    parts = [(status.value, counts[status]) for status in CheckStatus] + [("skipped", len(skipped))]
    because = f" ({tally(_causes(skipped).items())})" if skipped else ""
    return tally((name, n) for name, n in parts if n) + because


def _causes(skipped: Sequence[SkippedRow]) -> dict[str, int]:
    """Return how many rows were skipped for each cause, the most frequent first."""
    return dict(Counter(row.cause.value for row in skipped).most_common())
