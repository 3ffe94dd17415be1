"""Runs `codea1 export tests`."""

from __future__ import annotations

from codea1_agents.cli.console import counted, tally
from codea1_agents.cli.documents import problems_document
from codea1_agents.cli.evaluating import eval_session, from_options
from codea1_agents.cli.export import ExportTestsOptions
from codea1_agents.measure.export import ExportTask, Layout, export_tests, write_rows
from codea1_env.errors import UnknownName


def run_export_tests(options: ExportTestsOptions) -> None:
    """Run a tester over the problems and write its confirmed tests.

    Raises:
        UserError: an option names something that does not exist, no test was confirmed, the file cannot be written, or
            an agent failed.
        SandboxError: the sandbox cannot be used at all.
    """
    if options.layout not in list(Layout):
        raise UnknownName.of("layout", options.layout, [each.value for each in Layout])
    task = from_options(ExportTask, options, layout=Layout(options.layout))
    with eval_session(options) as session:
        opponent = session.agent(options.coder, "coder") if options.coder else None
        found = export_tests(
            session.problems, session.agent(options.agent, "tester"), session.sandbox, task, coder=opponent
        )
        write_rows(options.out, found.rows)
        page = session.page
        page.say(f"{options.out}: {counted(found.n_tests, 'test')} of {counted(len(found.rows), 'problem')}")
        if found.rejections:
            page.say(f"left out or corrected: {tally(found.rejections.most_common())}")
        if found.without_tests:
            page.warn(f"{len(found.without_tests)} problems have no confirmed test, hence no row")
        if found.unavailable:
            page.warn(
                f"an agent or the sandbox was unavailable for {len(found.unavailable)} problems, which have no row"
            )
        page.finish(
            problems=problems_document(options.problems, session.problems),
            seed=options.seed,
            out=str(options.out),
            n_problems=len(found.rows),
            n_tests=found.n_tests,
            without_tests=found.without_tests,
            unavailable=found.unavailable,
            rejections=dict(found.rejections),
        )
