"""`codea1 export tests` and `codea1 export model`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from codea1_agents.cli.console import Page, pluralize, problems_document, tally
from codea1_agents.cli.eval_session import eval_session
from codea1_agents.cli.options import Options, Problems, SessionOptions, agent_spec, n_suites, n_tests, output, seed_of
from codea1_agents.cli.progress import Progress
from codea1_agents.cli.train import require_training
from codea1_agents.evaluation.export import export_tests, write_rows
from codea1_env.problems import DEFAULT_SOURCE


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportTestsOptions(SessionOptions):
    """Run a tester over problems and write its confirmed tests as golden tests (paper, table 4).

    The file is itself a problem source: the same problems with the new golden tests.

    \b
    Example:
      codea1 export tests --agent boundary --problems starter --out tests.jsonl
    """

    agent: Annotated[str, agent_spec("--agent", "The tester (see codea1 list agents).")]
    out: Annotated[Path, output("File of JSON lines to write.", is_file=True)]
    problems: Problems = DEFAULT_SOURCE
    suites: Annotated[int, n_suites("Suites per problem; a test in several suites is written once.")] = 1
    tests: Annotated[int, n_tests()] = 8
    coder: Annotated[
        str | None,
        agent_spec("--coder", "Coder of the program that the tester sees.", show_default="none: the tester is blind"),
    ] = None
    seed: Annotated[int, seed_of("the agents")] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportModelOptions(Options):
    """Export a trained model as a directory that transformers can load: weights, configuration, tokenizer.

    An adapter alone names the model under it, and is refused on another one.

    \b
    Example:
      codea1 export model runs/first --role coder -o models/coder
    """

    source: Annotated[Path, Argument(help="Run folder of codea1 train, or one of its checkpoints.")]
    role: Annotated[str, Option(help="coder or tester.")]
    out: Annotated[Path, output("Directory to write, new or empty.")]
    adapter: Annotated[
        bool, Option("--adapter", help="Write the adapter (lora) alone, for peft, instead of the merged model.")
    ] = False


def run_export_tests(options: ExportTestsOptions) -> None:
    """Run a tester over the problems and write its confirmed tests.

    Raises:
        UserError: an option names something that does not exist, no test was confirmed, the file cannot be written, or
            an agent failed.
        SandboxError: the sandbox cannot be used at all.
    """
    with eval_session(options) as session:
        opponent = session.agent(options.coder, "coder") if options.coder else None
        tester = session.agent(options.agent, "tester")
        sizes = {"suites": options.suites, "tests": options.tests}
        with Progress("writing and judging tests", len(session.problems), session.page) as bar:
            bar.running = session.running
            data = export_tests(session.problems, tester, session.sandbox, **sizes, coder=opponent, progress=bar.reach)
        write_rows(options.out, data.rows)
        page = session.page
        page.say(f"{options.out}: {pluralize(data.n_tests, 'test')} of {pluralize(len(data.rows), 'problem')}")
        if data.rejections:
            page.say(f"left out: {tally(data.rejections.most_common())}")
        if data.without_tests:
            page.warn(f"{len(data.without_tests)} problems without a confirmed test were left out")
        if data.unavailable:
            page.warn(f"{len(data.unavailable)} problems were left out, since an agent or the sandbox was unavailable")
        page.finish(
            problems=problems_document(options.problems, session.problems),
            seed=options.seed,
            out=str(options.out),
            n_problems=len(data.rows),
            n_tests=data.n_tests,
            without_tests=data.without_tests,
            unavailable=data.unavailable,
            rejections=dict(data.rejections),
        )


def run_export_model(options: ExportModelOptions) -> None:
    """Write a trained model.

    Raises:
        UserError: the run or the role does not exist, or the directory cannot be written.
    """
    require_training()
    from codea1_agents.train.loop.export import export_model  # noqa: PLC0415  heavy

    page = Page(as_json=options.as_json)
    with page.apart(), Progress("exporting", None, page):
        export_model(options.source, options.role, options.out, adapter=options.adapter)
    page.say(f"{options.role} written to {options.out}")
    page.finish(role=options.role, out=str(options.out))
