"""`codea1 doctor`: the options. What it looks at: `codea1_agents.machine`."""

from __future__ import annotations

from codea1_agents.cli.options import Json


def doctor(
    as_json: Json = False,
) -> None:
    """Tell what this machine offers, what is missing, and the line that installs it.

    \b
    Example:
      codea1 doctor
    """
    from dataclasses import asdict  # noqa: PLC0415  only when run

    from codea1_agents.cli.console import Page, new_table  # noqa: PLC0415  heavy
    from codea1_agents.machine import examine  # noqa: PLC0415  heavy

    page = Page(as_json=as_json)
    findings = examine()
    rows = [(each.subject, "ok" if each.ok else "missing", each.detail, each.remedy) for each in findings]
    page.show(new_table(("", "", "found", "to get it"), rows, whole=(0, 1)))
    page.finish({"findings": [asdict(each) for each in findings]})
