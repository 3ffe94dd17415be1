"""What `codea1 export-tests` does."""

from __future__ import annotations

from codea1_agents.cli.console import tally
from codea1_agents.cli.evaluate import ExportTestsOptions
from codea1_agents.cli.evaluating import bench, named_alike
from codea1_agents.measure.export import ExportTask, Layout, export_tests, write_rows
from codea1_env.errors import UnknownName


def run_export(asked: ExportTestsOptions) -> None:
    """Run a tester over the problems and write its confirmed tests.

    Raises:
        UserError: something asked for does not exist, no test was confirmed, the file cannot be written, or an agent
            failed.
        SandboxError: the sandbox cannot be used at all.
    """
    if asked.layout not in list(Layout):
        raise UnknownName.of("layout", asked.layout, [each.value for each in Layout])
    task = named_alike(ExportTask, asked, layout=Layout(asked.layout))
    with bench(asked) as room:
        opponent = room.asker(asked.coder, "coder") if asked.coder else None
        found = export_tests(room.problems, room.asker(asked.agent, "tester"), room.sandbox, task, coder=opponent)
        write_rows(asked.out, found.rows)
        page = room.page
        page.say(f"{asked.out}: {found.n_tests} tests of {len(found.rows)} problems")
        if found.rejections:
            page.say(f"left out or corrected: {tally(found.rejections.most_common())}")
        if found.without_tests:
            page.warn(f"{len(found.without_tests)} problems have no confirmed test, and no row")
        if found.unavailable:
            page.warn(f"{len(found.unavailable)} problems could not be asked about, and have no row")
        page.finish(
            {
                "file": str(asked.out),
                "n_problems": len(found.rows),
                "n_tests": found.n_tests,
                "without_tests": found.without_tests,
                "unavailable": found.unavailable,
                "rejections": dict(found.rejections),
            }
        )
