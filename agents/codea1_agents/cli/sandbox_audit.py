"""`codea1 sandbox audit`: attacks a sandbox and prints what got through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Annotated

import typer
from typer import Option

from codea1_agents.cli.boundary import NOT_OK
from codea1_agents.cli.console import Page, new_table, tally
from codea1_agents.cli.options import NoProgress, Options, sandbox_name
from codea1_agents.cli.progress import Progress
from codea1_env.audit import Attacks, AuditReport, AuditResult, Finding, load_attacks, run_audit
from codea1_env.audit.plain_grader import PlainGrader, PlainResult
from codea1_env.audit.surroundings import Surroundings
from codea1_env.sandbox import load_sandbox


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


_AT_A_TIME = 4  # scripts of the plain grader, most of which wait for their time limit


def run_audit_command(options: AuditOptions) -> None:
    """Run the attacks and print the result of each.

    Raises:
        BadParameter: both JSON and Markdown were requested.
        UserError: there is no such sandbox or attack.
        SandboxError: the sandbox gives wrong results even before the first attack.
        typer.Exit: an attack forged a verdict, escaped or left something behind (1).
    """
    if options.markdown and options.as_json:
        raise typer.BadParameter("choose one of --json and --markdown")
    page = Page(as_json=options.as_json, quiet=options.quiet)
    attacks = load_attacks() if options.only is None else load_attacks().only(options.only)
    with closing(load_sandbox(options.sandbox)) as backend, Progress("attacking", len(attacks), page) as progress:
        report = run_audit(backend, attacks=attacks, progress=progress.reach)
    compared = _compared(attacks, page) if options.comparison else None
    rows = list(_rows(attacks, report, compared))
    columns = ("attack", "tries to", *(["plain grader"] if options.comparison else []), report.sandbox)
    if options.markdown:
        typer.echo(_as_markdown(attacks, rows, columns))
    else:
        page.show(new_table(columns, rows, whole=(0, 2, 3)))
        _print_findings(report, compared, page)
    page.finish(**_as_data(attacks, report, compared))
    if not report.is_sound:
        raise typer.Exit(NOT_OK)


def _compared(attacks: Attacks, page: Page) -> dict[str, Finding[PlainResult]]:
    grader = PlainGrader()
    if grader.obstacle:
        page.note(f"no comparison with a plain grader is possible: {grader.obstacle}")
    with (
        Progress("comparing", len(attacks), page) as progress,
        Surroundings(),  # the files and processes that attacks look for
        ThreadPoolExecutor(_AT_A_TIME) as pool,
    ):
        found = {}
        for comparison in pool.map(grader.try_attack, attacks):
            found[comparison.attack] = comparison
            progress.reach(len(found), len(attacks))
    return found


# -- text output -----------------------------------------------------------------------------------


def _rows(
    attacks: Attacks, report: AuditReport, compared: dict[str, Finding[PlainResult]] | None
) -> Iterable[tuple[str, ...]]:
    for attack, finding in zip(attacks, report.findings, strict=True):
        plain = [] if compared is None else [compared[attack.name].result.value]
        yield attack.name, attack.tries, *plain, _shown(finding)


def _shown(finding: Finding[AuditResult]) -> str:
    return finding.result.value.replace("_", " ") if finding.result is AuditResult.HELD else finding.result.upper()


def _print_findings(report: AuditReport, compared: dict[str, Finding[PlainResult]] | None, page: Page) -> None:
    for finding in report.findings:
        if finding.result is not AuditResult.HELD:
            page.say(f"{finding.attack}: {finding.result.value.replace('_', ' ')}: {finding.sentence}")
    counts = tally(report.counts.items())
    page.say(f"{report.sandbox} ({report.guarantee}, by {report.tier or 'its own means'}): {counts}")
    if compared is not None:
        page.say(f"plain grader: {_counts_of_plain_grader(compared)}")


def _counts_of_plain_grader(compared: dict[str, Finding[PlainResult]]) -> str:
    counts = Counter(comparison.result for comparison in compared.values())
    return ", ".join(f"{counts[result]} {result.value}" for result in PlainResult if counts[result])


def _as_markdown(attacks: Attacks, rows: Sequence[Sequence[str]], columns: Sequence[str]) -> str:
    head = [_markdown_row(columns), _markdown_row(["---"] * len(columns))]
    parts: list[str] = []
    left = iter(rows)
    kinds = {"programs": attacks.programs, "test suites": attacks.suites, "candidates": attacks.candidates}
    for title, kind in kinds.items():
        if kind:
            part = islice(left, len(kind))
            parts += [f"### {len(kind)} hostile {title}", "", *head, *map(_markdown_row, part), ""]
    return "\n".join(parts)


def _markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


# -- JSON output -----------------------------------------------------------------------------------


def _as_data(
    attacks: Attacks, report: AuditReport, compared: dict[str, Finding[PlainResult]] | None
) -> dict[str, object]:
    kinds = {
        **{attack.name: "program" for attack in attacks.programs},
        **{attack.name: "suite" for attack in attacks.suites},
        **{attack.name: "candidate" for attack in attacks.candidates},
    }
    tries = {attack.name: attack.tries for attack in attacks}
    return {
        "sandbox": report.sandbox,
        "guarantee": report.guarantee.value,
        "tier": report.tier,
        "is_sound": report.is_sound,
        "counts": {result.value: n for result, n in report.counts.items()},
        "attacks": [
            {
                **asdict(finding),
                "kind": kinds[finding.attack],
                "tries": tries[finding.attack],
                "plain_grader": None if compared is None else asdict(compared[finding.attack]),
            }
            for finding in report.findings
        ],
    }
