"""What `codea1 export-tests` does."""

from __future__ import annotations

from pathlib import Path

from codea1_agents.cli.evaluating import Asked, bench
from codea1_agents.evaluation.export import ExportTask, export_tests, write_rows


def run_export(asked: Asked, agent: str, coder: str | None, task: ExportTask, out: Path) -> None:
    """Run a tester over the problems and write its confirmed tests.

    Raises:
        UserError: something asked for does not exist, no test was confirmed, the file cannot be written, or an agent
            failed.
        SandboxError: the sandbox cannot be used at all.
    """
    with bench(asked) as room:
        opponent = room.asker(coder, "coder") if coder else None
        found = export_tests(room.problems, room.asker(agent, "tester"), room.sandbox, task, coder=opponent)
        write_rows(out, found.rows)
        page = room.page
        page.say(f"{out}: {found.n_tests} tests of {len(found.rows)} problems")
        left_out = ", ".join(f"{n} {reason.replace('_', ' ')}" for reason, n in found.rejections.most_common())
        if left_out:
            page.say(f"left out or corrected: {left_out}")
        if found.without_tests:
            page.warn(f"{len(found.without_tests)} problems have no confirmed test, and no row")
        if found.unavailable:
            page.warn(f"{len(found.unavailable)} problems could not be asked about, and have no row")
        page.finish(
            {
                "file": str(out),
                "n_problems": len(found.rows),
                "n_tests": found.n_tests,
                "without_tests": found.without_tests,
                "unavailable": found.unavailable,
                "rejections": dict(found.rejections),
            }
        )
