"""`codea1 sandbox audit`: attacks a sandbox and prints what got through."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Annotated

import typer
from typer import Option

from codea1_agents.cli.boundary import NOT_OK
from codea1_agents.cli.console import Page, new_table, tally
from codea1_agents.cli.options import NoProgress, Options, sandbox_name
from codea1_agents.cli.progress import Progress
from codea1_env.audit import Attacks, AuditReport, AuditResult, Finding, load_attacks, run_audit
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
    quiet: NoProgress = False


def run_audit_command(options: AuditOptions) -> None:
    """Run the attacks and print the result of each.

    Raises:
        UserError: the sandbox or the attack does not exist.
        SandboxError: the sandbox gives wrong results even before the first attack.
        typer.Exit: an attack was not held (1); also one that gained nothing but did not end as expected.
    """
    page = Page(as_json=options.as_json, quiet=options.quiet)
    attacks = load_attacks() if options.only is None else load_attacks().only(options.only)
    with closing(load_sandbox(options.sandbox)) as backend, Progress("attacking", len(attacks), page) as progress:
        report = run_audit(backend, attacks=attacks, progress=progress.reach)
    rows = [
        (attack.name, attack.tries, _result_text(finding))
        for attack, finding in zip(attacks, report.findings, strict=True)
    ]
    page.show(new_table(("attack", "tries to", report.sandbox), rows, whole=(0, 2)))
    for finding in report.findings:
        if finding.result is not AuditResult.HELD:
            page.say(f"{finding.attack}: {finding.result.value.replace('_', ' ')}: {finding.sentence}")
    counts = tally(report.counts.items())
    page.say(f"{report.sandbox} ({report.guarantee}, by {report.tier or 'its own means'}): {counts}")
    page.finish(**_as_data(attacks, report))
    if report.counts[AuditResult.HELD] < len(attacks):
        raise typer.Exit(NOT_OK)


def _result_text(finding: Finding) -> str:
    return finding.result.value.replace("_", " ") if finding.result is AuditResult.HELD else finding.result.upper()


def _as_data(attacks: Attacks, report: AuditReport) -> dict[str, object]:
    of_kind = {"program": attacks.programs, "suite": attacks.suites, "candidate": attacks.candidates}
    kinds = {attack.name: kind for kind, some in of_kind.items() for attack in some}
    tries = {attack.name: attack.tries for attack in attacks}
    return {
        "sandbox": report.sandbox,
        "guarantee": report.guarantee.value,
        "tier": report.tier,
        "is_sound": report.is_sound,
        "counts": {result.value: n for result, n in report.counts.items()},
        "attacks": [
            {**asdict(finding), "kind": kinds[finding.attack], "tries": tries[finding.attack]}
            for finding in report.findings
        ],
    }
